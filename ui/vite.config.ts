import { existsSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type Plugin } from "vite";
import solid from "vite-plugin-solid";

const CATALOG = fileURLToPath(new URL("../data/xid.yml", import.meta.url));

/** `import("virtual:xids")`: the XID catalogue of `data/`, by code. */
function xids(): Plugin {
  const id = "\0virtual:xids";
  return {
    name: "xids",
    resolveId: (source) => (source === "virtual:xids" ? id : undefined),
    load(source) {
      if (source !== id) return undefined;
      if (existsSync(CATALOG)) this.addWatchFile(CATALOG);
      return `export default ${JSON.stringify(existsSync(CATALOG) ? catalogOf(readFileSync(CATALOG, "utf8")) : {})};`;
    },
  };
}

/** The catalogue is a list of flat entries, one `key: value` a line; anything else is refused. */
function catalogOf(text: string): Record<string, Record<string, string>> {
  const found: Record<string, Record<string, string>> = {};
  let entry: Record<string, string> | undefined;
  for (const [number, line] of text.split("\n").entries()) {
    if (/^\s*(#.*)?$/.test(line) || line === "xids:") continue;
    const parts = /^( {2}- | {4})([a-z]+): (?:'((?:[^']|'')*)'|(\S.*))$/.exec(line);
    if (!parts) throw new Error(`data/xid.yml, line ${number + 1}: not "key: value": ${line}`);
    const [, start, key = "", quoted, plain = ""] = parts;
    const value = quoted?.replaceAll("''", "'") ?? plain;
    if (start?.includes("-")) entry = found[value] = {};
    else if (entry && ["name", "causes", "action", "severity"].includes(key)) entry[key] = value;
  }
  return found;
}

// The build is embedded in the binary: plain files, no address outside, nothing inlined as a data URI
// (the content security policy is `default-src 'self'`).
export default defineConfig({
  plugins: [solid(), xids()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: "runbooks", test: /docs\/runbooks\// }] } } },
  },
  server: {
    // `npm run dev` beside a running hub; WATCHFIRE_URL names another one.
    proxy: { "/api": process.env.WATCHFIRE_URL ?? "http://127.0.0.1:9900" },
    fs: { allow: [".."] },
  },
});
