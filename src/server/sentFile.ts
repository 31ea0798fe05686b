/**
 * Static files, compressed for clients that support it. Their bytes are shared, and a client with a current copy gets 304.
 */
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { createHash } from "node:crypto"
import { shareBytes } from "./connections/Connection.ts"

export interface SentFile {
  readonly plain: Uint8Array
  readonly gz: Uint8Array
  readonly br: Uint8Array
  readonly contentType: string
  /** The first 16 hex digits of the SHA-256 of the plain form. */
  readonly hash: string
}

export const sentFile = ({ br, contentType, gz, plain }: Omit<SentFile, "hash">): SentFile => ({
  plain: shareBytes(plain),
  gz: shareBytes(gz),
  br: shareBytes(br),
  contentType,
  hash: createHash("sha256").update(plain).digest("hex").slice(0, 16)
})

/** The best encoding that the client accepts. `q=0` excludes one. */
const encodingOf = (accepted: string): "br" | "gz" | "plain" => {
  const taken = new Map(
    accepted.toLowerCase().split(",").map((entry) => {
      const [name = "", ...parameters] = entry.split(";").map((part) => part.trim())
      return [name, !parameters.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter))] as const
    })
  )
  const takes = (name: string): boolean => taken.get(name) ?? taken.get("*") ?? false
  if (takes("br")) return "br"
  return takes("gzip") ? "gz" : "plain"
}

const contentEncodings = { br: "br", gz: "gzip", plain: undefined } as const

/** Replies with a file, or with 304. */
export const sendFile = (
  request: HttpServerRequest.HttpServerRequest,
  file: SentFile,
  headers: Readonly<Record<string, string>>
): HttpServerResponse.HttpServerResponse => {
  const encoding = encodingOf(request.headers["accept-encoding"] ?? "")
  const etag = `"${file.hash}-${encoding}"`
  const about = { ...headers, etag, vary: "Accept-Encoding" }
  const known = request.headers["if-none-match"]?.split(",").map((tag) => tag.trim().replace(/^W\//, ""))
  if (known?.some((tag) => tag === etag || tag === "*") === true) {
    return HttpServerResponse.empty({ status: 304, headers: about })
  }
  const contentEncoding = contentEncodings[encoding]
  return HttpServerResponse.uint8Array(file[encoding], {
    contentType: file.contentType,
    headers: contentEncoding === undefined ? about : { ...about, "content-encoding": contentEncoding }
  })
}
