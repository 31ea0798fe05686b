/**
 * Request bodies that the client has compressed. Their limits count the decoded bytes, and a bound on the ratio keeps a small body from
 * becoming a large one.
 */
import { isReadonlyArrayNonEmpty } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Pull from "effect/Pull"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate, createInflateRaw, createZstdDecompress } from "node:zlib"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"

/** Decoded bytes for each byte of a body at most, beyond the first `freeBytes`. Prompts have a ratio of 3 to 30. */
const mostRatio = 100
const freeBytes = 1024 * 1024

/** Makes the decoder of an encoding by the first byte of the body. */
type MakeDecoder = (first: number) => Transform

const decoders: ReadonlyMap<string, MakeDecoder> = new Map<string, MakeDecoder>([
  ["gzip", () => createGunzip()],
  ["x-gzip", () => createGunzip()],
  ["br", () => createBrotliDecompress()],
  // Many clients leave out the frame that the standard asks for.
  ["deflate", (first) => (first & 0x0f) === 8 ? createInflate() : createInflateRaw()],
  ["zstd", () => createZstdDecompress()]
])

/** The encodings of a request's body, in the order in which they were applied. */
export const encodingOf = ({ headers }: HttpServerRequest.HttpServerRequest): Result.Result<string, GatewayError> => {
  const stated = headers["content-encoding"] ?? ""
  const names = stated.toLowerCase().split(",").map((name) => name.trim()).filter((name) =>
    name !== "" && name !== "identity"
  )
  const [name = "identity"] = names
  if (names.length === 0 || (names.length === 1 && decoders.has(name))) return Result.succeed(name)
  return Result.fail(
    gatewayError(
      "unsupported_media_type",
      names.length > 1
        ? `The body has several content encodings, "${stated.slice(0, 100)}"; send one of gzip, br, deflate and zstd`
        : `The content encoding "${stated.slice(0, 100)}" is not supported; send gzip, br, deflate, zstd or none`
    )
  )
}

const tooDense = gatewayError(
  "request_too_large",
  `The request body grows more than ${mostRatio} times when it is decoded; send it without a content encoding`
)

const broken = (encoding: string): GatewayError => invalidRequest(`The request body is not valid ${encoding}`)

/** Decodes one body, whose decoder exists from its first byte on. */
class BodyDecoding {
  readonly #encoding: string
  readonly #most: number
  readonly #tooLarge: GatewayError
  #decoder: Transform | undefined
  #received = 0
  #decoded = 0
  #out: Array<Uint8Array> = []
  #fault: GatewayError | undefined
  #settle: (() => void) | undefined

  constructor(encoding: string, most: number, tooLarge: GatewayError) {
    this.#encoding = encoding
    this.#most = most
    this.#tooLarge = tooLarge
  }

  /** What the next bytes decode to. */
  decode(chunk: Uint8Array): Effect.Effect<ReadonlyArray<Uint8Array>, GatewayError> {
    if (chunk.length === 0) return Effect.succeed([])
    this.#received += chunk.length
    const decoder = this.#decoder ??= this.#start(chunk[0]!)
    return this.#settled((done) => decoder.write(chunk, done))
  }

  /** The rest at the end of the body. */
  end(): Effect.Effect<ReadonlyArray<Uint8Array>, GatewayError> {
    const decoder = this.#decoder
    return decoder === undefined ? Effect.succeed([]) : this.#settled((done) => decoder.once("end", done).end())
  }

  close(): void {
    this.#decoder?.destroy()
  }

  #start(first: number): Transform {
    return decoders.get(this.#encoding)!(first)
      .on("data", (bytes: Uint8Array) => {
        this.#decoded += bytes.length
        if (this.#decoded > this.#most) return this.#fail(this.#tooLarge)
        if (this.#decoded > freeBytes + mostRatio * this.#received) return this.#fail(tooDense)
        this.#out.push(bytes)
      })
      .on("error", () => this.#fail(broken(this.#encoding)))
  }

  #fail(fault: GatewayError): void {
    this.#fault ??= fault
    this.close()
    this.#settle?.()
  }

  #settled(work: (done: () => void) => void): Effect.Effect<ReadonlyArray<Uint8Array>, GatewayError> {
    return Effect.callback((resume) => {
      const settle = () => {
        this.#settle = undefined
        const out = this.#out
        this.#out = []
        resume(this.#fault === undefined ? Effect.succeed(out) : Effect.fail(this.#fault))
      }
      if (this.#fault !== undefined) return settle()
      this.#settle = settle
      work(() => this.#settle?.())
    })
  }
}

/** The decoded bytes of a body. Fails with `tooLarge` above `most` of them, with 413 for a ratio beyond the bound, with 400 if it is broken. */
export const decoded =
  (encoding: string, most: number, tooLarge: GatewayError) =>
  <E>(bytes: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E | GatewayError> =>
    encoding === "identity" ? bytes : Stream.transformPull(bytes, (pull, scope) => {
      const decoding = new BodyDecoding(encoding, most, tooLarge)
      let isOver = false
      const next: Pull.Pull<readonly [Uint8Array, ...Array<Uint8Array>], E | GatewayError> = Effect.suspend(() =>
        isOver ? Cause.done() : Effect.flatMap(
          Pull.catchDone(
            Effect.flatMap(pull, (chunks) => Effect.forEach(chunks, (chunk) => decoding.decode(chunk))),
            () => {
              isOver = true
              return Effect.map(decoding.end(), (rest) => [rest])
            }
          ),
          (pieces) => {
            const out = pieces.flat()
            return isReadonlyArrayNonEmpty(out) ? Effect.succeed(out) : next
          }
        )
      )
      return Effect.as(Scope.addFinalizer(scope, Effect.sync(() => decoding.close())), next)
    })
