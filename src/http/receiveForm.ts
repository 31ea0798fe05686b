/**
 * Receives a `multipart/form-data` body as a stream. With the field `model` in its first 64 KiB, the rest is read while it is sent on, so that
 * a file behind the field is never held whole. Otherwise the body is held, within `limits.body_bytes` and `limits.buffered_bytes`. A
 * body that is held can be sent again.
 */
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import { type Held, holdBytes } from "../config/limits.ts"
import { type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import type { Limits } from "../domain/limits.ts"
import { boundaryOf, type FormPiece, FormScan, modelPlace } from "../domain/stream/FormScan.ts"
import type { CarriedBody } from "../upstream/Upstream.ts"
import { modelFault } from "./bodyLimits.ts"
import { pullBody } from "./BodyPace.ts"
import { encodingFault, smallBody, tooLarge, tooMuchHeld } from "./receiveBody.ts"

/** True for the type of a form. */
export const isForm = (contentType: string | undefined): contentType is string =>
  contentType !== undefined && /^\s*multipart\/form-data\s*;/i.test(contentType)

/** Bytes that a character of a model's name may have. */
const widest = 4

const sizeOf = (pieces: ReadonlyArray<FormPiece>): number =>
  pieces.reduce((sum, piece) => piece === modelPlace ? sum : sum + piece.length, 0)

/** A body that has arrived. */
const heldBody = async function*(pieces: ReadonlyArray<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield* pieces
}

/** A form whose field `model` has arrived. */
export class ReceivedForm {
  readonly model: string
  /** The error of a body that turned out to be wrong while it was sent. */
  fault: GatewayError | undefined
  /** Bytes of the body have left, so that it cannot be sent again. */
  isSpent = false
  /** Bytes that have left so far. */
  sent = 0
  /** Judges the fields by which servers choose another model, or a tier, that arrive after the request's admission. */
  refuse: ((names: ReadonlyArray<string>) => GatewayError | undefined) | undefined
  /** The names of these fields so far. */
  readonly choosing: ReadonlyArray<string>
  private readonly pieces: ReadonlyArray<FormPiece>
  private readonly contentType: string
  private readonly held: Held
  private heldBytes: number
  /** The bytes of the body, without those of the model's name; `undefined` if they are not known. */
  private readonly length: number | undefined
  /** Reads more of the body; `undefined` if it has arrived whole. */
  private readonly more: (() => Promise<ReadonlyArray<FormPiece> | undefined>) | undefined

  constructor(form: {
    readonly model: string
    readonly pieces: ReadonlyArray<FormPiece>
    readonly contentType: string
    readonly held: Held
    readonly heldBytes: number
    readonly length: number | undefined
    readonly choosing: ReadonlyArray<string>
    readonly more: (() => Promise<ReadonlyArray<FormPiece> | undefined>) | undefined
  }) {
    this.model = form.model
    this.choosing = form.choosing
    this.pieces = form.pieces
    this.contentType = form.contentType
    this.held = form.held
    this.heldBytes = form.heldBytes
    this.length = form.length
    this.more = form.more
  }

  /** The body with the server's name of the model. */
  body(model: string): CarriedBody {
    const { contentType, length, more } = this
    const name = Buffer.from(model)
    const bytes = this.pieces.map((piece) => piece === modelPlace ? name : piece)
    return {
      content: more === undefined ? heldBody(bytes) : this.arriving(bytes, more),
      contentType,
      length: length === undefined ? undefined : length + name.length,
      recorded: ""
    }
  }

  /** The bytes that have arrived are not sent again: they no longer count as held. */
  release(): void {
    this.held.add(-this.heldBytes)
    this.heldBytes = 0
  }

  private async *arriving(
    head: ReadonlyArray<Uint8Array>,
    more: () => Promise<ReadonlyArray<FormPiece> | undefined>
  ): AsyncGenerator<Uint8Array> {
    this.isSpent = true
    let next: ReadonlyArray<FormPiece> | undefined = head
    while (next !== undefined) {
      for (const piece of next) {
        if (piece === modelPlace) continue
        this.sent += piece.length
        yield piece
      }
      this.release()
      next = await more()
      this.heldBytes = sizeOf(next ?? [])
      this.held.add(this.heldBytes)
    }
  }
}

/** Receives a form. Fails with 400 for one that is malformed or has no `model`, and with the errors of all bodies. */
export const receiveForm = Effect.fnUntraced(function*(
  request: HttpServerRequest.HttpServerRequest,
  contentType: string,
  limits: Limits
): Effect.fn.Return<ReceivedForm, GatewayError, Scope.Scope> {
  const encoded = encodingFault(request)
  if (encoded !== undefined) return yield* encoded
  const boundary = boundaryOf(contentType)
  if (boundary === undefined) return yield* invalidRequest("The content type of the form has no boundary")
  const { body_bytes } = limits
  const declared = Number(request.headers["content-length"] ?? Number.NaN)
  if (declared > body_bytes) return yield* tooLarge(body_bytes)
  const held = yield* holdBytes
  const scope = yield* Effect.scope
  const context = yield* Effect.context<never>()
  const scan = new FormScan(boundary, limits.model_chars * widest)
  const pull = yield* pullBody(request, limits)
  let received = 0

  const check = (): GatewayError | undefined => {
    if (received > body_bytes) return tooLarge(body_bytes)
    const { fault } = scan
    return fault === undefined ? undefined : invalidRequest(fault.message, fault.field)
  }
  /** Reads on; `undefined` at the end. */
  const read: Effect.Effect<ReadonlyArray<FormPiece> | undefined, GatewayError> = Pull.matchEffect(pull, {
    onSuccess: (chunks) => {
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
      const fault = check()
      return fault === undefined ? Effect.undefined : Effect.fail(fault)
    }
  })

  const pieces: Array<FormPiece> = []
  let heldBytes = 0
  let isWhole = false
  /** The model came so early that the rest need not be held. */
  let isEarly = false
  while (!isWhole && !(isEarly && heldBytes > smallBody)) {
    const next = yield* read
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

  let running: Fiber.Fiber<unknown, unknown> | undefined
  // The reading ends with the request.
  yield* Scope.addFinalizer(scope, Effect.suspend(() => running === undefined ? Effect.void : Fiber.interrupt(running)))
  let judged = scan.choosing.length
  const judge = (pieces: ReadonlyArray<FormPiece> | undefined) => {
    const names = scan.choosing.slice(judged)
    judged += names.length
    const refused = names.length === 0 ? undefined : form.refuse?.(names)
    return refused === undefined ? Effect.succeed(pieces) : Effect.fail(refused)
  }
  const more = () => {
    const fiber = Effect.runForkWith(context)(Effect.flatMap(read, judge))
    running = fiber
    return Effect.runPromise(Effect.catch(Fiber.join(fiber), (error) => {
      form.fault ??= error
      return Effect.fail(error)
    }))
  }
  const form = new ReceivedForm({
    model,
    choosing: scan.choosing,
    pieces,
    contentType,
    held,
    heldBytes,
    length: isWhole ? heldBytes : Number.isNaN(declared) ? undefined : declared - scan.modelBytes,
    more: isWhole ? undefined : more
  })
  return form
})

/** The error for a form where only JSON is read. */
export const noForm = gatewayError("unsupported_media_type", "This endpoint has no files; send application/json")
