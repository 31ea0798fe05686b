/** The errors of the content-generation contract, for clients (spec "Errors"). */
import * as Schema from "effect/Schema"
import { filledError } from "../../domain/errorBody.ts"
import { gatewayError } from "../../domain/GatewayError.ts"
import { codeOfStatus, errorShape } from "../shared/errorShapes.ts"

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
