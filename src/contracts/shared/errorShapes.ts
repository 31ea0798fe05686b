/**
 * The error format of each family of routes (spec "Errors"). Each body is declared once; the declaration yields the text of
 * responses and streams, the schema in the API documents, and the errors of typed clients, which decode to `GatewayError`.
 */
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { type ErrorFamily, filledError } from "../../domain/errorBody.ts"
import { type ErrorCode, errorTable, GatewayError, gatewayError } from "../../domain/GatewayError.ts"

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
  /** The schema of an error with this HTTP status: the body, and the error that it stands for. */
  at: (received: number) =>
    body.pipe(
      Schema.decodeTo(
        Schema.toType(GatewayError),
        SchemaTransformation.transform<GatewayError, S["Type"]>({
          decode: (sent) => revive(sent, received),
          encode: (error) => render(error, undefined)
        })
      )
    )
})

const isCode = (code: string): code is ErrorCode => Object.hasOwn(errorTable, code)

/** A code for the status, for families whose bodies have no code. */
export const codeOfStatus = (status: number): ErrorCode =>
  (Object.keys(errorTable) as Array<ErrorCode>).find((code) => errorTable[code].status === status) ?? "internal_error"

export const fields = Schema.Struct({
  message: Schema.String,
  type: Schema.String,
  code: Schema.String,
  param: Schema.NullOr(Schema.String)
})

/** The fields of an error; those of a server's are filled in where the server has none. `type` is the contract's own, if it has one. */
export const errorFields = (error: GatewayError, type: string = error.type): typeof fields.Type => {
  const { code, message, param, passed, serverCode } = error
  const own = { message, type, code: serverCode ?? code, param }
  return passed === undefined ? own : filledError(passed.body.error, own)
}

export const revived = ({ code, message, param }: typeof fields.Type) =>
  gatewayError(isCode(code) ? code : "internal_error", message, { param: param ?? undefined })
