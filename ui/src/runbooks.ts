// The runbooks of `docs/runbooks/`, put in by the build, one file each; loaded when read.

const FILES = import.meta.glob<string>("../../docs/runbooks/*.md", { query: "?raw", import: "default" });

const BY_NAME = new Map(Object.entries(FILES).map(([path, load]) => [/([^/]+)\.md$/.exec(path)?.[1] ?? path, load]));

/** The page of a runbook that an alert names by its place in the documentation. */
export function runbookPath(url: string): string | undefined {
  const name = /(?:^|\/)docs\/runbooks\/([\w-]+)\.md$/.exec(url)?.[1];
  return name && BY_NAME.has(name) ? `/runbooks/${name}` : undefined;
}

export async function runbook(name: string): Promise<string | undefined> {
  return BY_NAME.get(name)?.();
}
