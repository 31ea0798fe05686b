/**
 * The error bodies of each family as schemas, one per status, for the API documents and for typed clients, which get the
 * domain's error class back. The edges write the same bodies at run time.
 */
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type { ErrorCode } from "../domain/GatewayError.ts"
import { ErrorFault, errorTable, GatewayError, gatewayError } from "../domain/GatewayError.ts"

const fields = {
  message: Schema.String,
  type: Schema.String,
  code: Schema.String,
  param: Schema.NullOr(Schema.String)
}

/** `{error: {message, type, code, param}}` */
export const OpenAiErrorBody = Schema.Struct({ error: Schema.Struct(fields) }).annotate({ identifier: "Error" })

/** The same within the messages style's envelope. */
export const MessagesErrorBody = Schema.Struct({
  type: Schema.Literal("error"),
  error: Schema.Struct(fields),
  request_id: Schema.NullOr(Schema.String)
}).annotate({ identifier: "MessagesError" })

/** `{error: {code, message, status}}` */
export const GenerateErrorBody = Schema.Struct({
  error: Schema.Struct({ code: Schema.Int, message: Schema.String, status: Schema.String })
}).annotate({ identifier: "GenerateError" })

/** `{detail}`, with all `faults` of a change to the settings that is refused. */
export const DetailErrorBody = Schema.Struct({
  detail: Schema.String,
  faults: Schema.optionalKey(Schema.Array(ErrorFault))
}).annotate({ identifier: "AdminError" })

const statuses = [...new Set(Object.values(errorTable).map((entry) => entry.status))]

const isCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code)

/** The code that stands for a status in families whose bodies carry none. */
const codeOfStatus = (status: number): ErrorCode =>
  (Object.keys(errorTable) as Array<ErrorCode>).find((code) => errorTable[code].status === status) ?? "internal_error"

const revive = (error: { readonly message: string; readonly code: string; readonly param: string | null }) =>
  gatewayError(isCode(error.code) ? error.code : "internal_error", error.message, { param: error.param ?? undefined })

const wording = (error: GatewayError) => ({
  message: error.message,
  type: error.type,
  code: error.code,
  param: error.param
})

const perStatus = <S extends Schema.Top>(make: (status: number) => S) =>
  statuses.map((status) => make(status).pipe(HttpApiSchema.status(status)))

export const openaiErrors = perStatus(() =>
  OpenAiErrorBody.pipe(Schema.decodeTo(
    Schema.toType(GatewayError),
    SchemaTransformation.transform({
      decode: ({ error }) => revive(error),
      encode: (error) => ({ error: wording(error) })
    })
  ))
)

export const messagesErrors = perStatus(() =>
  MessagesErrorBody.pipe(Schema.decodeTo(
    Schema.toType(GatewayError),
    SchemaTransformation.transform({
      decode: ({ error }) => revive(error),
      encode: (error) => ({ type: "error" as const, error: wording(error), request_id: null })
    })
  ))
)

export const generateErrors = perStatus((status) =>
  GenerateErrorBody.pipe(Schema.decodeTo(
    Schema.toType(GatewayError),
    SchemaTransformation.transform({
      decode: ({ error }) => gatewayError(codeOfStatus(status), error.message),
      encode: (error) => ({ error: { code: error.status, message: error.message, status: error.rpc } })
    })
  ))
)

export const detailErrors = perStatus((status) =>
  DetailErrorBody.pipe(Schema.decodeTo(
    Schema.toType(GatewayError),
    SchemaTransformation.transform({
      decode: ({ detail, faults }) => gatewayError(codeOfStatus(status), detail, { faults }),
      encode: ({ faults, message }) => ({ detail: message, ...(faults === undefined ? {} : { faults }) })
    })
  ))
)
