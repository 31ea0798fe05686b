/**
 * Receives a `multipart/form-data` body as a stream. With the field `model` in its first 64 KiB, the rest is read while it is sent on, so that
 * a file behind the field is never held whole. Otherwise the body is held, within `limits.body_bytes` and `limits.buffered_bytes`. A
 * body that is held can be sent again.
 */
import { isReadonlyArrayNonEmpty } from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Held, holdBytes } from "../config/limits.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Limits } from "../domain/limits.ts"
import { boundaryOf, type FormPiece, FormScan, modelPlace } from "../domain/stream/FormScan.ts"
import { type ChunkPull, fromPullOnce } from "../domain/stream/transduce.ts"
import type { RelayedBody } from "../upstream/Upstream.ts"
import { modelFault } from "./bodyLimits.ts"
import { pacedBody } from "./BodyPace.ts"
import { decoded, encodingOf } from "./contentEncoding.ts"
import { smallBody, tooLarge, tooMuchHeld } from "./receiveBody.ts"

/** True for the type of a form. */
export const isForm = (contentType: string | undefined): contentType is string =>
  contentType !== undefined && /^\s*multipart\/form-data\s*;/i.test(contentType)

/** Bytes that a character of a model's name may have. */
const widest = 4

const sizeOf = (pieces: ReadonlyArray<FormPiece>): number =>
  pieces.reduce((sum, piece) => piece === modelPlace ? sum : sum + piece.length, 0)

/** What has arrived of a form, up to its field `model` at least. */
interface Arrived {
  readonly model: string
  /** The names of the fields so far by which servers choose another model, or a tier. */
  readonly choosing: ReadonlyArray<string>
  readonly pieces: ReadonlyArray<FormPiece>
  readonly contentType: string
  readonly held: Held
  /** The bytes of the body, without those of the model's name; `undefined` if they are not known. */
  readonly length: number | undefined
  /** Reads more of the body; `undefined` if it has arrived whole. */
  readonly rest: ChunkPull<FormPiece, GatewayError> | undefined
}

/** A form whose field `model` has arrived. */
export class ReceivedForm {
  /** Bytes of the body have left, so that it cannot be sent again. */
  isSpent = false
  /** Bytes that have left so far. */
  sent = 0
  /** Judges the fields by which servers choose another model, or a tier, that arrive after the request's admission. */
  refuse: ((names: ReadonlyArray<string>) => GatewayError | undefined) | undefined
  readonly model: string
  readonly choosing: ReadonlyArray<string>
  private readonly form: Arrived
  private heldBytes: number

  constructor(form: Arrived, heldBytes: number) {
    this.model = form.model
    this.choosing = form.choosing
    this.form = form
    this.heldBytes = heldBytes
  }

  /** The body with the server's name of the model. */
  body(model: string): RelayedBody {
    const { contentType, length } = this.form
    const name = Buffer.from(model)
    return {
      content: fromPullOnce(this.leaving(name)),
      contentType,
      length: length === undefined ? undefined : length + name.length,
      recorded: ""
    }
  }

  /** The bytes that have arrived are not sent again: they no longer count as held. */
  release(): void {
    this.hold(0)
  }

  /** So many bytes of the body are in memory. */
  private hold(bytes: number): void {
    this.form.held.add(bytes - this.heldBytes)
    this.heldBytes = bytes
  }

  /** The bytes of the body, piece by piece. */
  private leaving(name: Uint8Array): ChunkPull<Uint8Array, GatewayError> {
    const { rest } = this.form
    let at = 0
    let { pieces } = this.form
    const next = (): ChunkPull<Uint8Array, GatewayError> => {
      if (at < pieces.length) {
        const piece = pieces[at++]!
        const bytes = piece === modelPlace ? name : piece
        if (rest !== undefined) {
          this.isSpent = true
          this.sent += bytes.length
        }
        return Effect.succeed([bytes])
      }
      if (rest === undefined) return Cause.done()
      // Until more arrives, the last pieces may still be on their way to the server.
      return Effect.flatMap(rest, (arrived) => {
        this.hold(sizeOf(arrived))
        pieces = arrived
        at = 0
        return next()
      })
    }
    return Effect.suspend(next)
  }
}

/** Receives a form. Fails with 400 for one that is malformed or has no `model`, and with the errors of all bodies. */
export const receiveForm = Effect.fnUntraced(function*(
  request: HttpServerRequest.HttpServerRequest,
  contentType: string,
  limits: Limits
): Effect.fn.Return<ReceivedForm, GatewayError, Scope.Scope> {
  const encoding = yield* Effect.fromResult(encodingOf(request))
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return yield* invalidRequest("The content type of the form has no boundary")
  const { body_bytes } = limits
  const length = Number(request.headers["content-length"] ?? Number.NaN)
  const declared = encoding === "identity" ? length : Number.NaN
  if (declared > body_bytes) return yield* tooLarge(body_bytes)
  const held = yield* holdBytes
  const scope = yield* Effect.scope
  const context = yield* Effect.context<never>()
  const scan = new FormScan(boundary, limits.model_chars * widest)
  const pull = yield* Stream.toPull(decoded(encoding, body_bytes, tooLarge(body_bytes))(pacedBody(request, limits)))
  let received = 0

  const check = (): GatewayError | undefined => {
    if (received > body_bytes) return tooLarge(body_bytes)
    const { fault } = scan
    return fault === undefined ? undefined : invalidRequest(fault.message, fault.field)
  }
  /** The pieces of one read, which may be empty. */
  const read: Pull.Pull<ReadonlyArray<FormPiece>, GatewayError> = Pull.matchEffect(pull, {
    onSuccess: (chunks): Pull.Pull<ReadonlyArray<FormPiece>, GatewayError> => {
      const out: Array<FormPiece> = []
      for (const chunk of chunks) {
        received += chunk.length
        scan.push(chunk, out)
      }
      const fault = check()
      return fault === undefined ? Effect.succeed(out) : Effect.fail(fault)
    },
    onFailure: (cause) => Effect.failCause(cause),
    onDone: () => {
      scan.end()
      return Effect.andThen(check() ?? Effect.void, Cause.done())
    }
  })

  const pieces: Array<FormPiece> = []
  let heldBytes = 0
  let isWhole = false
  /** The model came so early that the rest need not be held. */
  let isEarly = false
  while (!isWhole && !(isEarly && heldBytes > smallBody)) {
    const next: ReadonlyArray<FormPiece> | undefined = yield* Pull.catchDone(read, () => Effect.undefined)
    isWhole = next === undefined
    for (const piece of next ?? []) {
      pieces.push(piece)
      if (piece === modelPlace) {
        isEarly = heldBytes <= smallBody
        continue
      }
      heldBytes += piece.length
      if (!held.add(piece.length)) return yield* tooMuchHeld
    }
  }
  const { model } = scan
  if (model === undefined || model.trim() === "") return yield* invalidRequest("model: is required", "model")
  const long = modelFault(model, limits)
  if (long !== undefined) return yield* long

  let judged = scan.choosing.length
  const judge = (pieces: ReadonlyArray<FormPiece>): ChunkPull<FormPiece, GatewayError> => {
    const names = scan.choosing.slice(judged)
    judged += names.length
    const refused = names.length === 0 ? undefined : form.refuse?.(names)
    if (refused !== undefined) return Effect.fail(refused)
    return isReadonlyArrayNonEmpty(pieces) ? Effect.succeed(pieces) : rest
  }
  // The reading ends with the request, and the time of its limits is the gateway's.
  const inRequest = Effect.provideContext(Effect.flatMap(Effect.forkIn(read, scope), Fiber.join), context)
  const rest = Effect.suspend(() => Effect.flatMap(inRequest, judge))
  const form = new ReceivedForm({
    model,
    choosing: scan.choosing,
    pieces,
    contentType,
    held,
    length: isWhole ? heldBytes : Number.isNaN(declared) ? undefined : declared - scan.modelBytes,
    rest: isWhole ? undefined : rest
  }, heldBytes)
  return form
})

/** The error for a form where only JSON is read. */
export const noForm = gatewayError("unsupported_media_type", "This endpoint has no files; send application/json")
