/**
 * Reads a JSON request body within the limits and decodes it by a Schema. Every fault is an error that names the field as the
 * caller wrote it.
 *
 * Effect's endpoint decoding is not used for bodies: it parses before depth and items can be checked, blocks the event loop for a
 * large body, handles other content types itself, and does not report where JSON is invalid.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Scope from "effect/Scope"
import { noteIgnored, noteMoreIgnored } from "../completion/ignored.ts"
import type { Request } from "../completion/Request.ts"
import { runCooperatively } from "../config/clock/cooperative.ts"
import { Deadlines } from "../config/clock/Deadlines.ts"
import { CurrentLimits, holdBytes } from "../config/limits.ts"
import type { BodyVendorFields } from "../contracts/shared/BodyVendorFields.ts"
import type { Family, ServerFields } from "../contracts/shared/Family.ts"
import { type Rest, restOf } from "../contracts/shared/restOf.ts"
import { choosingFields } from "../domain/choosingFields.ts"
import type { Conversation } from "../domain/Conversation.ts"
import { fieldName, type GatewayError, gatewayError, invalidRequest } from "../domain/GatewayError.ts"
import { isRecord, type JsonRecord, readExactly } from "../domain/json.ts"
import type { Limits } from "../domain/limits.ts"
import { outputFields } from "../domain/outputFields.ts"
import { type Cooperative, runSync } from "../domain/stream/cooperative.ts"
import { bytesOfValues, type Measured, measureJson } from "../domain/stream/measureJson.ts"
import { itemCounter, measureFault } from "./bodyLimits.ts"
import { MessageSource } from "./MessageSource.ts"
import { planDecoder } from "./planDecoder.ts"
import { receiveBody, smallBody, tooMuchHeld } from "./receiveBody.ts"
import { CurrentRequest } from "./RequestContext.ts"

/** How bodies of one kind are read. */
interface BodyRules {
  /** A limit in bytes below `body_bytes`, such as for bodies that are read before authentication; `undefined` without one. */
  readonly limit: number | undefined
  /** An empty body means an empty object. */
  readonly mayBeEmpty: boolean
  /** Returns an error for a body before it is decoded. */
  readonly refuse: ((body: unknown) => Cooperative<GatewayError | undefined>) | undefined
  /** Converts a body to the form that the Schema describes. */
  readonly normalize: ((body: unknown) => Cooperative<unknown>) | undefined
  /** The request has its text too. */
  readonly keepsText: boolean
  /** The request has its body as it was parsed too. */
  readonly keepsSent: boolean
  /**
   * The vendor's contract, whose table says what becomes of fields that the Schema does not read. The fields that its Schema marks count
   * against the limits, and the prompt's bytes are held.
   */
  readonly family: Family | undefined
  /** Returns the vendor's request within a body, which may be the body itself. */
  readonly requestIn: (body: unknown) => unknown
}

const plainRules: BodyRules = {
  limit: undefined,
  mayBeEmpty: false,
  refuse: undefined,
  normalize: undefined,
  keepsText: false,
  keepsSent: false,
  family: undefined,
  requestIn: (body) => body
}

/** The rules that differ from those of a plain body. */
export type BodyOptions = Partial<BodyRules>

/** A request as it was read. */
export interface ReadRequest<A> {
  readonly body: A
  /** The body's text as it was received, if the reader keeps it; else empty. */
  readonly text: string
  /** The body as it was parsed, with fields that its Schema lacks, if the reader keeps it. */
  readonly sent: JsonRecord | undefined
  /** Fields of the body that go to the server as they stand. */
  readonly serverFields: ServerFields | undefined
  /** The body's vendor fields. */
  readonly bodyVendorFields: BodyVendorFields | undefined
}

/** The conversation of a request, with the fields that only some drivers send. */
export const withRest = (
  conversation: Conversation,
  { bodyVendorFields, serverFields }: Pick<ReadRequest<unknown>, "bodyVendorFields" | "serverFields">
): Conversation => {
  if (serverFields === undefined && bodyVendorFields === undefined) return conversation
  const vendorFields = conversation.vendorFields ?? bodyVendorFields?.attach("")
  return {
    ...conversation,
    ...(serverFields === undefined ? {} : { serverFields: { ...conversation.serverFields, ...serverFields } }),
    ...(bodyVendorFields === undefined ? {} : { bodyVendorFields }),
    ...(vendorFields === undefined ? {} : { vendorFields })
  }
}

const isJsonType = (contentType: string | undefined): boolean =>
  contentType === undefined || contentType === "" || /[/+]json\b/i.test(contentType)

/** Many clients send JSON with their default content type, so a text that starts as JSON is accepted as JSON. */
const beginsAsJson = (text: string): boolean => /^\s*[[{]/.test(text)

const parseJson = (text: string, contentType: string | undefined): Result.Result<unknown, GatewayError> => {
  if (text.trim() === "") return Result.fail(invalidRequest("The request body is empty; a JSON object is expected"))
  try {
    const value: unknown = JSON.parse(text)
    return Result.succeed(value)
  } catch (error) {
    if (!isJsonType(contentType) && !beginsAsJson(text)) {
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

/** Restores the digits of long integers in the turns of a body, in place. */
function* restoreIntegers(body: unknown, text: string, turns: ReadonlyArray<string>): Cooperative<void> {
  if (turns.length === 0 || !isRecord(body)) return
  const exact: unknown = yield* readExactly(text)
  if (!isRecord(exact)) return
  for (const field of turns) {
    if (Object.hasOwn(body, field)) body[field] = exact[field]
  }
}

/** Messages without the names of our schemas. */
const leafHook: SchemaIssue.LeafHook = (issue) =>
  issue._tag === "MissingKey"
    ? "is required"
    : issue._tag === "InvalidType" && SchemaAST.isObjects(issue.ast)
    ? "must be an object"
    : SchemaIssue.defaultLeafHook(issue).replace(
      /^Expected (?:(array|integer|object)|(boolean|number|string))?/,
      (_, an?: string, a?: string) => `must be ${an === undefined ? a === undefined ? "" : `a ${a}` : `an ${an}`}`
    )

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1({ leafHook })

/** The first fault of a Schema as an error that names its field. `within` is the path of the decoded value. */
export const schemaFault = (issue: SchemaIssue.Issue, within: ReadonlyArray<PropertyKey> = []): GatewayError => {
  const first = formatIssue(issue).issues[0]
  const keys = [...within, ...(first?.path ?? []).map((key) => typeof key === "object" ? key.key : key)]
  const field = fieldName(keys)
  const what = (first?.message ?? "is not valid").slice(0, 400)
  return field === "" ? invalidRequest(`The request body ${what}`) : invalidRequest(`${field}: ${what}`, field)
}

/** Counts bytes against `buffered_bytes` until the request is over. */
const hold = (bytes: number): Effect.Effect<void, GatewayError, Scope.Scope> =>
  Effect.flatMap(holdBytes, (held) => held.add(bytes) ? Effect.void : Effect.fail(tooMuchHeld))

/** Counts the prompt of `chars` characters against `buffered_bytes` until the request is over, at two bytes per character. */
export const holdPrompt = (chars: number): Effect.Effect<void, GatewayError, Scope.Scope> => hold(2 * chars)

/** A decoded body with what it says beyond its Schema. Notes what of it has no effect. */
const withBody = <A>(
  body: A,
  text: string,
  rest: Rest | undefined,
  current: Request | undefined,
  sent: unknown
): Result.Result<ReadRequest<A>, GatewayError> => {
  if (rest?.refused !== undefined) return Result.fail(rest.refused)
  if (rest !== undefined && current !== undefined) {
    for (const path of rest.ignored) noteIgnored(current.stats, path)
    if (rest.more > 0) noteMoreIgnored(current.stats, rest.more)
  }
  return Result.succeed({
    body,
    text,
    sent: isRecord(sent) ? sent : undefined,
    serverFields: rest?.serverFields,
    bodyVendorFields: rest?.bodyVendorFields
  })
}

/** Makes a reader of one kind of request. Build it once, not per request. */
export const jsonRequest = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, options?: BodyOptions) => {
  const { family, keepsSent, keepsText, limit, mayBeEmpty, normalize, refuse, requestIn } = {
    ...plainRules,
    ...options
  }
  const counter = family === undefined ? undefined : itemCounter(schema)
  const decodeWhole = Schema.decodeUnknownResult(schema)
  const decodeLarge = planDecoder(schema)

  function* decode(
    text: string,
    contentType: string | undefined,
    limits: Limits,
    current: Request | undefined,
    message: MessageSource | undefined
  ): Cooperative<Result.Result<ReadRequest<S["Type"]>, GatewayError>> {
    const kept = keepsText ? text : ""
    const parsed = parseJson(text, contentType)
    const body = message === undefined ? parsed : Result.map(parsed, (value) => message.bodyOf(value))
    if (Result.isFailure(body)) return Result.fail(body.failure)
    const refused = refuse === undefined ? undefined : yield* refuse(body.success)
    if (refused !== undefined) return Result.fail(refused)
    const request = requestIn(body.success)
    current?.identity?.readBody(request)
    if (current !== undefined) current.bodyChars = text.length
    for (const part of request === body.success ? [request] : [body.success, request]) {
      const { paths, refused } = yield* choosingFields(part)
      if (refused !== undefined) return Result.fail(refused)
      current?.choosing.push(...paths)
    }
    if (current !== undefined) current.outputs = yield* outputFields(body.success)
    yield* restoreIntegers(body.success, text, counter?.turns ?? [])
    const rest = family === undefined ? undefined : yield* restOf(family, request)
    const value = normalize === undefined ? body.success : yield* normalize(body.success)
    const tooMany = counter === undefined ? undefined : yield* counter.count(value, limits)
    if (tooMany !== undefined) return Result.fail(tooMany)
    // Decoding in slices takes 1.5 to 5 times as long; the slowest body of this size takes 9 ms as a whole.
    if (text.length <= smallBody) {
      const whole = decodeWhole(value)
      return Result.isSuccess(whole)
        ? withBody(whole.success, kept, rest, current, keepsSent ? request : undefined)
        : Result.fail(schemaFault(whole.failure.issue))
    }
    const decoded = yield* decodeLarge(value)
    return Result.isSuccess(decoded)
      ? withBody(decoded.success, kept, rest, current, keepsSent ? request : undefined)
      : Result.fail(schemaFault(decoded.failure.issue, decoded.failure.path))
  }

  const read = (
    received: string,
    contentType: string | undefined,
    limits: Limits,
    current: Request | undefined,
    message: MessageSource | undefined
  ): Effect.Effect<ReadRequest<S["Type"]>, GatewayError, Scope.Scope> => {
    const text = mayBeEmpty && received.trim() === "" ? "{}" : received
    const isSmall = text.length <= smallBody
    const prompt = isSmall || (family === undefined && !keepsText) ? 0 : 2 * text.length
    const decoded = (measured: Measured): Effect.Effect<ReadRequest<S["Type"]>, GatewayError, Scope.Scope> => {
      const fault = measureFault(measured, limits, "The request body")
      if (fault !== undefined) return Effect.fail(fault)
      const work = decode(text, contentType, limits, current, message)
      const values = bytesOfValues(measured.values)
      const bytes = prompt + (values <= smallBody ? 0 : values)
      if (isSmall && bytes === 0) return Effect.fromResult(runSync(work))
      const sliced = Effect.flatMap(runCooperatively(work), Effect.fromResult)
      return bytes === 0 ? sliced : Effect.andThen(hold(bytes), sliced)
    }
    if (message !== undefined) return decoded(message.measured)
    const measuring = measureJson(text, limits)
    return isSmall ? decoded(runSync(measuring)) : Effect.flatMap(runCooperatively(measuring), decoded)
  }

  return (
    request: HttpServerRequest.HttpServerRequest
  ): Effect.Effect<ReadRequest<S["Type"]>, GatewayError, Scope.Scope> => {
    return Effect.withFiber((fiber) => {
      const limits = fiber.getRef(CurrentLimits)
      const deadlines = Context.getOrUndefined(fiber.context, Deadlines)
      const current = Context.getOrUndefined(fiber.context, CurrentRequest)
      return Effect.flatMap(receiveBody(request, limits(), deadlines, limit), (received) => {
        current?.followers.recording?.received(received)
        const message = request.source instanceof MessageSource ? request.source : undefined
        return read(received, request.headers["content-type"], limits(), current, message)
      })
    })
  }
}

/** An endpoint with one JSON body. */
export interface Reads<S extends Schema.Constraint> extends HttpApiEndpoint.Constraint {
  readonly annotations: Context.Context<never>
  readonly ["~Payload"]: S
  readonly payload: HttpApiEndpoint.PayloadMap
}

/** The schema of an endpoint's body. */
export const payloadOf = <S extends Schema.Constraint>(endpoint: Reads<S>): Schema.ConstraintDecoder<S["Type"]> => {
  const [schema, ...more] = [...endpoint.payload.values()].flatMap(({ schemas }) => [...schemas])
  if (schema === undefined || more.length > 0) {
    throw new Error(`${endpoint.identifier} must have exactly one kind of body`)
  }
  return schema as Schema.ConstraintDecoder<S["Type"]>
}

/** Makes a reader of an endpoint's requests, typed by the endpoint. Build it once, not per request. */
export const requestReader = <S extends Schema.Constraint>(endpoint: Reads<S>, options?: BodyOptions) =>
  jsonRequest(payloadOf(endpoint), options)

/** `jsonRequest` of bodies that say nothing beyond their Schema. */
export const jsonBody = <S extends Schema.ConstraintDecoder<unknown>>(
  schema: S,
  options?: Omit<BodyOptions, "family">
) => {
  const read = jsonRequest(schema, options)
  return (
    request: HttpServerRequest.HttpServerRequest
  ): Effect.Effect<S["Type"], GatewayError, Scope.Scope> => Effect.map(read(request), ({ body }) => body)
}

/** `requestReader` of bodies that say nothing beyond their Schema. */
export const payloadReader = <S extends Schema.Constraint>(
  endpoint: Reads<S>,
  options?: Omit<BodyOptions, "family">
): (request: HttpServerRequest.HttpServerRequest) => Effect.Effect<S["Type"], GatewayError, Scope.Scope> =>
  jsonBody(payloadOf(endpoint), options)
