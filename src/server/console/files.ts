/**
 * The console's built files, read at the first request and kept in memory.
 */
import * as Effect from "effect/Effect"
import { brotliDecompressSync, gzipSync } from "node:zlib"
import { assets } from "../assets.ts"
import { type SentFile, sentFile } from "../sentFile.ts"

/** Files by their path below `/console/`; the page is `index.html`. */
export type ConsoleFiles = ReadonlyMap<string, SentFile>

const contentTypes: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml"
}

const compressed = ".br"

/** The files of known types. A build has only their Brotli forms, because its package compresses none of the others as well. */
const filesOf = (contents: ReadonlyMap<string, Uint8Array>): ConsoleFiles => {
  const files = new Map<string, SentFile>()
  for (const [path, br] of contents) {
    if (!path.endsWith(compressed)) continue
    const name = path.slice(0, -compressed.length)
    const contentType = contentTypes[name.split(".").at(-1)!]
    if (contentType === undefined) continue
    const plain = contents.get(name) ?? brotliDecompressSync(br)
    const gz = contents.get(`${name}.gz`) ?? gzipSync(plain, { level: 9 })
    files.set(name, sentFile({ plain, gz, br, contentType }))
  }
  return files
}

const prefix = "console/"

const amongAssets = Effect.map(assets, (all) =>
  filesOf(
    new Map(
      [...all].flatMap(([name, bytes]) => name.startsWith(prefix) ? [[name.slice(prefix.length), bytes] as const] : [])
    )
  ))

let read: ConsoleFiles | undefined

/** All files; empty when reading fails, which is logged. */
export const consoleFiles: Effect.Effect<ConsoleFiles> = Effect.suspend(() => {
  if (read !== undefined) return Effect.succeed(read)
  return Effect.tap(amongAssets, (files) => {
    read = files
    return Effect.void
  })
}).pipe(
  Effect.catchCause((cause) => Effect.as(Effect.logError("The console's files cannot be read", cause), new Map()))
)
