/** The errors of the messages contract, for clients (spec "Errors"). */
import * as Schema from "effect/Schema"
import { errorFields, errorShape, fields, revived } from "../shared/errorShapes.ts"

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
