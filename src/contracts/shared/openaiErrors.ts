/** The errors of chat completions, Responses and embeddings, for clients (spec "Errors"). */
import * as Schema from "effect/Schema"
import { errorFields, errorShape, fields, revived } from "./errorShapes.ts"

/** Chat completions, Responses, embeddings and their model lists: `{error: {message, type, code, param}}`. */
export const openaiErrors = errorShape(Schema.Struct({ error: fields }).annotate({ identifier: "Error" }), {
  family: "openai",
  render: (error) => ({ ...error.passed?.body, error: errorFields(error) }),
  revive: ({ error }) => revived(error)
})
