import { defineConfig } from "vite";
import solid from "vite-plugin-solid";

// The build is embedded in the binary: plain files, no address outside, nothing inlined as a data URI
// (the content security policy is `default-src 'self'`).
export default defineConfig({
  plugins: [solid()],
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
  server: {
    // `npm run dev` beside a running hub; WATCHFIRE_URL names another one.
    proxy: { "/api": process.env.WATCHFIRE_URL ?? "http://127.0.0.1:9900" },
  },
});
