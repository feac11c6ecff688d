// The little of Markdown that runbooks use: headings, paragraphs, lists, code blocks, `code` and **strong**.

import { For, type JSX } from "solid-js";

type Block =
  | { kind: "heading"; level: number; text: string }
  | { kind: "code"; language: string; text: string }
  | { kind: "list"; ordered: boolean; items: string[] }
  | { kind: "paragraph"; text: string };

export function Markdown(props: { text: string; code: (language: string, text: string) => JSX.Element }): JSX.Element {
  return (
    <For each={blocksOf(props.text)}>
      {(block) => {
        switch (block.kind) {
          case "heading": return block.level === 1 ? <h1>{spans(block.text)}</h1> : block.level === 2 ? <h2>{spans(block.text)}</h2> : <h3>{spans(block.text)}</h3>;
          case "code": return props.code(block.language, block.text);
          case "list": return block.ordered ? <ol><Items of={block.items} /></ol> : <ul><Items of={block.items} /></ul>;
          case "paragraph": return <p>{spans(block.text)}</p>;
        }
      }}
    </For>
  );
}

function Items(props: { of: string[] }): JSX.Element {
  return <For each={props.of}>{(item) => <li>{spans(item)}</li>}</For>;
}

function spans(text: string): JSX.Element[] {
  return text.split(/(`[^`]+`|\*\*[^*]+\*\*)/).map((part) =>
    part.startsWith("`") ? <code>{part.slice(1, -1)}</code> : part.startsWith("**") ? <strong>{part.slice(2, -2)}</strong> : part);
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? "";
    const last = blocks.at(-1);
    const open = (lines[i - 1] ?? "").trim() !== "";
    const heading = /^(#+) (.*)$/.exec(line);
    const item = /^(-|\*|\d+\.) (.*)$/.exec(line);
    const fence = /^```(\w*)/.exec(line);
    if (fence) {
      const end = lines.indexOf("```", i + 1);
      const stop = end < 0 ? lines.length : end;
      blocks.push({ kind: "code", language: fence[1] ?? "", text: lines.slice(i + 1, stop).join("\n") });
      i = stop;
    } else if (heading) {
      blocks.push({ kind: "heading", level: heading[1]?.length ?? 1, text: heading[2] ?? "" });
    } else if (item) {
      const ordered = /\d/.test(item[1] ?? "");
      if (last?.kind === "list" && last.ordered === ordered && open) last.items.push(item[2] ?? "");
      else blocks.push({ kind: "list", ordered, items: [item[2] ?? ""] });
    } else if (line.trim() !== "") {
      // A line that goes on belongs to what stands above it.
      if (open && last?.kind === "paragraph") last.text += ` ${line.trim()}`;
      else if (open && last?.kind === "list") last.items[last.items.length - 1] += ` ${line.trim()}`;
      else blocks.push({ kind: "paragraph", text: line.trim() });
    }
  }
  return blocks;
}
