/**
 * How each family of routes words an error (spec "Errors"): its body declared once, of which come the text of replies and
 * streams, the schema in the API documents, and the errors of typed clients, which get the domain's error class back.
 */
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { type ErrorCode, ErrorFault, errorTable, GatewayError, gatewayError } from "../domain/GatewayError.ts"

/** What is declared of a family's errors. */
interface Declared<Body> {
  /** The body of an error. The request's id stands where the family has a field for it. */
  readonly render: (error: GatewayError, requestId: string | undefined) => Body
  /** The error that a body of a status tells of. */
  readonly revive: (body: Body, status: number) => GatewayError
}

/** How one family of routes words an error. */
export interface ErrorShape {
  /** The JSON text of an error's body. */
  readonly text: (error: GatewayError, requestId?: string) => string
}

const statuses = [...new Set(Object.values(errorTable).map((entry) => entry.status))]

/** Declares a family's errors. */
export const errorShape = <const S extends Schema.Codec<unknown>>(
  body: S,
  { render, revive }: Declared<S["Type"]>
) => ({
  /** The body's schema. */
  body,
  text: (error: GatewayError, requestId?: string): string => JSON.stringify(render(error, requestId)),
  /** The body as the errors of endpoints, one a status. */
  errors: statuses.map((status) =>
    body.pipe(
      Schema.decodeTo(
        Schema.toType(GatewayError),
        SchemaTransformation.transform<GatewayError, S["Type"]>({
          decode: (said) => revive(said, status),
          encode: (error) => render(error, undefined)
        })
      ),
      HttpApiSchema.status(status)
    )
  )
})

const isCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code)

/** The code that stands for a status in families whose bodies carry none. */
const codeOfStatus = (status: number): ErrorCode =>
  (Object.keys(errorTable) as Array<ErrorCode>).find((code) => errorTable[code].status === status) ?? "internal_error"

const fields = Schema.Struct({
  message: Schema.String,
  type: Schema.String,
  code: Schema.String,
  param: Schema.NullOr(Schema.String)
})

const wording = ({ code, message, param, type }: GatewayError): typeof fields.Type => ({ message, type, code, param })

const revived = ({ code, message, param }: typeof fields.Type) =>
  gatewayError(isCode(code) ? code : "internal_error", message, { param: param ?? undefined })

/** Chat completions, Responses, embeddings and their model lists: `{error: {message, type, code, param}}`. */
export const openaiErrors = errorShape(Schema.Struct({ error: fields }).annotate({ identifier: "Error" }), {
  render: (error) => ({ error: wording(error) }),
  revive: ({ error }) => revived(error)
})

/** Messages style: the same within the vendor's envelope. */
export const messagesErrors = errorShape(
  Schema.Struct({
    type: Schema.Literal("error"),
    error: fields,
    request_id: Schema.NullOr(Schema.String)
  }).annotate({ identifier: "MessagesError" }),
  {
    render: (error, requestId) => ({ type: "error", error: wording(error), request_id: requestId ?? null }),
    revive: ({ error }) => revived(error)
  }
)

/** Content generation: `{error: {code, message, status}}`. */
export const generateErrors = errorShape(
  Schema.Struct({
    error: Schema.Struct({ code: Schema.Int, message: Schema.String, status: Schema.String })
  }).annotate({ identifier: "GenerateError" }),
  {
    render: ({ message, rpc, status }) => ({ error: { code: status, message, status: rpc } }),
    revive: ({ error }, status) => gatewayError(codeOfStatus(status), error.message)
  }
)

/** Admin routes: `{detail}`, with all `faults` of a change to the settings that is refused. */
export const detailErrors = errorShape(
  Schema.Struct({
    detail: Schema.String,
    faults: Schema.optionalKey(Schema.Array(ErrorFault))
  }).annotate({ identifier: "AdminError" }),
  {
    render: ({ faults, message }) => faults === undefined ? { detail: message } : { detail: message, faults },
    revive: ({ detail, faults }, status) => gatewayError(codeOfStatus(status), detail, { faults })
  }
)
