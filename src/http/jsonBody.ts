/**
 * Reads a JSON request body within bounds and decodes it by a Schema, once, at the door. Every fault is an error that
 * names the field as the caller wrote it.
 *
 * The endpoints' own decoding is not used for bodies: it parses before depth can be checked, answers a foreign content
 * type on its own, and does not say where JSON is broken.
 */
import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { inSlices } from "../config/inSlices.ts"
import { fieldName } from "../domain/fieldName.ts"
import type { GatewayError } from "../domain/GatewayError.ts"
import { gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { nestsTooDeep } from "./nesting.ts"

/** Largest body, in bytes (behaviour: "Request body limit 32 MiB"). */
export const bodyLimit = 32 * 1024 * 1024

/** Deepest nesting of arrays and objects in a body. */
export const depthLimit = 200

/** Bodies up to this size are not counted: node buffers as much of a body that nobody reads. */
const smallBody = 64 * 1024

/** Memory for large bodies that are being handled, over all requests of the process. */
export interface BodyBudget {
  readonly limit: number
  used: number
}

/** The budget in force; every gateway of a process shares it unless another is provided. */
export const CurrentBodyBudget: Context.Reference<BodyBudget> = Context.Reference("model-gateway/http/BodyBudget", {
  defaultValue: (): BodyBudget => ({ limit: 512 * 1024 * 1024, used: 0 })
})

/** How one kind of body departs from the rule. */
export interface BodyOptions {
  /** Largest body in bytes where it is less than `bodyLimit`, such as where no credential stands before it. */
  readonly limit?: number
  /** An empty body stands for an empty object. */
  readonly mayBeEmpty?: boolean
}

const sizeOf = (bytes: number): string => bytes < 1024 * 1024 ? `${bytes / 1024} KiB` : `${bytes / 1024 / 1024} MiB`

const tooLarge = (limit: number) =>
  gatewayError("request_too_large", `The request body is larger than the limit of ${sizeOf(limit)}`)
const notReadable = invalidRequest("The request body could not be read")
const tooBusy = gatewayError("rate_limit_exceeded", "Too many large requests are being received", { retryAfter: 5 })

const readLarge = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
): Effect.Effect<string, GatewayError, Scope.Scope> =>
  Effect.gen(function*() {
    const budget = yield* CurrentBodyBudget
    const chunks: Array<Uint8Array> = []
    let bytes = 0
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        budget.used -= bytes
      })
    )
    yield* Stream.runForEachArray(Stream.mapError(request.stream, () => notReadable), (arrived) => {
      for (const chunk of arrived) {
        chunks.push(chunk)
        bytes += chunk.length
        budget.used += chunk.length
      }
      if (bytes > limit) return Effect.fail(tooLarge(limit))
      return budget.used > budget.limit ? Effect.fail(tooBusy) : Effect.void
    })
    return new TextDecoder().decode(concat(chunks, bytes))
  })

const concat = (chunks: ReadonlyArray<Uint8Array>, length: number): Uint8Array => {
  const whole = new Uint8Array(length)
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}

const smallBodySize = ByteSize.bytes(smallBody)

const readText = (
  request: HttpServerRequest.HttpServerRequest,
  limit: number
): Effect.Effect<string, GatewayError, Scope.Scope> => {
  // A web request without a body has no stream that could be read.
  if (request.source instanceof Request && request.source.body === null) return Effect.succeed("")
  const declared = Number(request.headers["content-length"])
  if (declared > limit) return Effect.fail(tooLarge(limit))
  if (declared <= smallBody) {
    return request.text.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, smallBodySize),
      Effect.mapError(() => notReadable)
    )
  }
  return readLarge(request, limit)
}

const isJsonType = (contentType: string | undefined): boolean =>
  contentType === undefined || contentType === "" || /[/+]json\b/i.test(contentType)

const parseJson = (text: string, contentType: string | undefined): Result.Result<unknown, GatewayError> => {
  if (text.trim() === "") return Result.fail(invalidRequest("The request body is empty; a JSON object is expected"))
  try {
    const value: unknown = JSON.parse(text)
    return Result.succeed(value)
  } catch (error) {
    if (!isJsonType(contentType)) {
      return Result.fail(
        gatewayError(
          "unsupported_media_type",
          `The content type "${contentType}" is not supported; send application/json`
        )
      )
    }
    const place = error instanceof Error ? `: ${error.message}` : ""
    return Result.fail(invalidRequest(`The request body is not valid JSON${place}`.slice(0, 300)))
  }
}

/** In callers' words, without the names that our schemas have. */
const leafHook: SchemaIssue.LeafHook = (issue) =>
  issue._tag === "MissingKey"
    ? "is required"
    : issue._tag === "InvalidType" && SchemaAST.isObjects(issue.ast)
    ? "Expected object"
    : SchemaIssue.defaultLeafHook(issue)

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook })

/** The first fault that a Schema found, as an error that names its field. */
export const schemaFault = (issue: SchemaIssue.Issue): GatewayError => {
  const first = formatIssue(issue).issues[0]
  const keys = (first?.path ?? []).map((key) => typeof key === "object" ? key.key : key)
  const field = fieldName(keys)
  const what = (first?.message ?? "Invalid value").slice(0, 400)
  return field === "" ? invalidRequest(`The request body: ${what}`) : invalidRequest(`${field}: ${what}`, field)
}

/** Makes a reader of one kind of body. Build it once, not per request. */
export const jsonBody = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, options: BodyOptions = {}) => {
  const { limit = bodyLimit, mayBeEmpty = false } = options
  const decode = Schema.decodeUnknownResult(schema)
  return Effect.fnUntraced(function*(
    request: HttpServerRequest.HttpServerRequest
  ): Effect.fn.Return<S["Type"], GatewayError, Scope.Scope> {
    const encoding = request.headers["content-encoding"]
    if (encoding !== undefined && encoding !== "" && encoding !== "identity") {
      return yield* gatewayError("unsupported_media_type", `The content encoding "${encoding}" is not supported`)
    }
    const received = yield* readText(request, limit)
    const text = mayBeEmpty && received.trim() === "" ? "{}" : received
    if (yield* inSlices(nestsTooDeep(text, depthLimit))) {
      return yield* invalidRequest(`The request body nests deeper than ${depthLimit} levels`)
    }
    const parsed = parseJson(text, request.headers["content-type"])
    if (Result.isFailure(parsed)) return yield* parsed.failure
    const decoded = decode(parsed.success)
    if (Result.isFailure(decoded)) return yield* schemaFault(decoded.failure.issue)
    return decoded.success
  })
}
