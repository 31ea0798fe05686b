/**
 * The console's files as they were built: read when somebody first asks for them, and kept.
 */
import * as Effect from "effect/Effect"
import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** A file in the forms that a browser may take. */
export interface ConsoleFile {
  readonly plain: Uint8Array
  readonly gz: Uint8Array
  readonly br: Uint8Array
  readonly contentType: string
  /** The beginning of SHA-256 of the plain form. */
  readonly hash: string
}

/** Files by their path below `/console/`; the page is `index.html`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml"
}

/** Beside the bundle, beside the folder of its chunks, or where the sources build it. */
const places = ["./console/", "../console/", "../../../node_modules/.cache/console/"]

const readFolder = (folder: string): ConsoleFiles => {
  const files = new Map<string, ConsoleFile>()
  for (const found of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
    const name = found.replaceAll("\\", "/")
    const contentType = contentTypes[name.split(".").at(-1)!]
    if (contentType === undefined) continue
    const plain = readFileSync(folder + name)
    const hash = createHash("sha256").update(plain).digest("hex").slice(0, 16)
    files.set(name, {
      plain,
      gz: readFileSync(`${folder}${name}.gz`),
      br: readFileSync(`${folder}${name}.br`),
      contentType,
      hash
    })
  }
  return files
}

let read: ConsoleFiles | undefined

/** All files; none where the console was not built. */
export const consoleFiles: Effect.Effect<ConsoleFiles> = Effect.sync(() => {
  if (read !== undefined) return read
  for (const place of places) {
    try {
      const files = readFolder(fileURLToPath(new URL(place, import.meta.url)))
      if (files.has("index.html")) return read = files
    } catch {
      // It is at another place.
    }
  }
  return new Map()
})
