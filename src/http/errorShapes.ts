/**
 * The error format of each family of routes (spec "Errors"). Each body is declared once; the declaration yields the text of
 * responses and streams, the schema in the API documents, and the errors of typed clients, which decode to `GatewayError`.
 */
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { type ErrorFamily, filledError } from "../domain/errorBody.ts"
import { type ErrorCode, ErrorFault, errorTable, GatewayError, gatewayError } from "../domain/GatewayError.ts"
import { passedStatuses } from "../domain/passedError.ts"

/** Conversion between an error and a family's body. */
interface Declared<Body> {
  /** The body of an error, with the request id if the family has a field for it. */
  readonly render: (error: GatewayError, requestId: string | undefined) => Body
  /** The error of a body with this HTTP status. */
  readonly revive: (body: Body, status: number) => GatewayError
  /** The protocol whose servers' errors go to callers of the family as they came. */
  readonly family?: ErrorFamily
  /** The HTTP status, if it is not the error's. */
  readonly status?: (error: GatewayError) => number
}

/** The error format of a family. */
export interface ErrorShape {
  /** The protocol whose servers' errors have this format; absent for the admin API. */
  readonly family?: ErrorFamily
  /** The HTTP status of an error. */
  readonly status: (error: GatewayError) => number
  /** The JSON text of an error's body. */
  readonly text: (error: GatewayError, requestId?: string) => string
}

const statuses = [...new Set(Object.values(errorTable).map((entry) => entry.status))]

/** Declares a family's error format. */
export const errorShape = <const S extends Schema.Codec<unknown>>(
  body: S,
  { family, render, revive, status = (error) => error.status }: Declared<S["Type"]>
) => ({
  /** The body's schema. */
  body,
  ...(family === undefined ? {} : { family }),
  status,
  text: (error: GatewayError, requestId?: string): string => JSON.stringify(render(error, requestId)),
  /** The error schemas of endpoints, one per status. */
  errors: (family === undefined ? statuses : [...new Set([...statuses, ...passedStatuses])]).map((status) =>
    body.pipe(
      Schema.decodeTo(
        Schema.toType(GatewayError),
        SchemaTransformation.transform<GatewayError, S["Type"]>({
          decode: (received) => revive(received, status),
          encode: (error) => render(error, undefined)
        })
      ),
      HttpApiSchema.status(status)
    )
  )
})

const isCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code)

/** A code for the status, for families whose bodies have no code. */
const codeOfStatus = (status: number): ErrorCode =>
  (Object.keys(errorTable) as Array<ErrorCode>).find((code) => errorTable[code].status === status) ?? "internal_error"

const fields = Schema.Struct({
  message: Schema.String,
  type: Schema.String,
  code: Schema.String,
  param: Schema.NullOr(Schema.String)
})

/** The fields of an error; those of a server's are filled in where the server has none. */
export const errorFields = ({ code, message, param, passed, serverCode, type }: GatewayError): typeof fields.Type => {
  const own = { message, type, code: serverCode ?? code, param }
  return passed === undefined ? own : filledError(passed.body.error, own)
}

const revived = ({ code, message, param }: typeof fields.Type) =>
  gatewayError(isCode(code) ? code : "internal_error", message, { param: param ?? undefined })

/** Chat completions, Responses, embeddings and their model lists: `{error: {message, type, code, param}}`. */
export const openaiErrors = errorShape(Schema.Struct({ error: fields }).annotate({ identifier: "Error" }), {
  family: "openai",
  render: (error) => ({ ...error.passed?.body, error: errorFields(error) }),
  revive: ({ error }) => revived(error)
})

/** Messages style: the same fields in the vendor's envelope. */
export const messagesErrors = errorShape(
  Schema.Struct({
    type: Schema.Literal("error"),
    error: fields,
    request_id: Schema.optionalKey(Schema.NullOr(Schema.String))
  }).annotate({ identifier: "MessagesError" }),
  {
    family: "messages",
    // Claude Code repeats a 400 several times, and names the model after a 404.
    status: (error) => error.code === "model_not_found" && error.passed === undefined ? 404 : error.status,
    render: (error, requestId) => {
      const { body } = error.passed ?? {}
      return body === undefined
        ? { type: "error", error: errorFields(error), request_id: requestId ?? null }
        : { type: "error", ...body, error: errorFields(error) }
    },
    revive: ({ error }) => revived(error)
  }
)

/** Content generation: `{error: {code, message, status}}`. */
export const generateErrors = errorShape(
  Schema.Struct({
    error: Schema.Struct({ code: Schema.Int, message: Schema.String, status: Schema.String })
  }).annotate({ identifier: "GenerateError" }),
  {
    family: "generate",
    render: ({ message, passed, rpc, status }) => {
      const own = { code: status, message, status: rpc }
      return { ...passed?.body, error: passed === undefined ? own : filledError(passed.body.error, own) }
    },
    revive: ({ error }, status) => gatewayError(codeOfStatus(status), error.message)
  }
)

/** Admin routes: `{detail}`, with all `faults` of a refused change to the settings. */
export const detailErrors = errorShape(
  Schema.Struct({
    detail: Schema.String,
    faults: Schema.optionalKey(Schema.Array(ErrorFault))
  }).annotate({ identifier: "AdminError" }),
  {
    render: ({ faults, message }) => faults === undefined ? { detail: message } : { detail: message, faults },
    revive: ({ detail, faults }, status) =>
      // Other codes with this status are of business requests.
      gatewayError(status === 403 ? "role_not_allowed" : codeOfStatus(status), detail, { faults })
  }
)
