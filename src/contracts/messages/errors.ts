/** The errors of the messages contract, for clients (spec "Errors"). */
import * as Schema from "effect/Schema"
import type { GatewayError } from "../../domain/GatewayError.ts"
import { errorFields, errorShape, fields, revived } from "../shared/errorShapes.ts"

// Claude Code repeats a 400 several times, and names the model after a 404.
const statusOf = (error: GatewayError): number =>
  error.code === "model_not_found" && error.passed === undefined ? 404 : error.status

/** The vendor's types of statuses that other contracts have no type for: https://docs.anthropic.com/en/api/errors. */
const types: Readonly<Record<number, string>> = { 404: "not_found_error", 413: "request_too_large" }

/** Messages style: the same fields in the vendor's envelope. */
export const messagesErrors = errorShape(
  Schema.Struct({
    type: Schema.Literal("error"),
    error: fields,
    request_id: Schema.optionalKey(Schema.NullOr(Schema.String))
  }).annotate({ identifier: "MessagesError" }),
  {
    family: "messages",
    status: statusOf,
    render: (error, requestId) => {
      const { body } = error.passed ?? {}
      return body === undefined
        ? { type: "error", error: errorFields(error, types[statusOf(error)]), request_id: requestId ?? null }
        : { type: "error", ...body, error: errorFields(error, types[statusOf(error)]) }
    },
    revive: ({ error }) => revived(error)
  }
)
