// Build and development server; the development server proxies to a running host.
import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";

const host = process.env["GREENROOM_URL"] ?? "http://127.0.0.1:8700";
const token = process.env["GREENROOM_TOKEN"];

/** Paths of the host; all others are pages of this interface. */
const proxied = ["/v1", "/openapi.json", "/healthz", "/readyz"];
// The host checks Origin and Host exactly, so both must be its own.
const headers = { origin: host, ...(token ? { authorization: `Bearer ${token}` } : {}) };

export default defineConfig({
  // The host may have a base path: it replaces `./` in the page with it; scripts resolve each other relatively.
  base: "./",
  plugins: [react()],
  resolve: { alias: { "@": fileURLToPath(new URL("./src", import.meta.url)) } },
  server: {
    host: "127.0.0.1",
    proxy: Object.fromEntries(proxied.map((path) => [path, { target: host, changeOrigin: true, headers }])),
  },
  build: {
    target: "es2022",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    manifest: true,
    chunkSizeWarningLimit: 900,
  },
  test: { include: ["src/**/*.test.{ts,tsx}"], environment: "node" },
});
