/**
 * Tests the service through itself (spec "POST /admin/test").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { optional } from "../../domain/optional.ts"
import { bodies, documented, reading } from "../../http/documented.ts"
import { AdminEdge } from "../edges.ts"

/** The key is the first configured one where none is given. */
export const SelfTestRequest = Schema.Struct({
  model: optional(Schema.String),
  message: optional(Schema.String),
  api_key: optional(Schema.String)
}).annotate({ identifier: "SelfTestRequest" })

export const SelfTestReply = Schema.Struct({
  success: Schema.Boolean,
  status_code: Schema.Int,
  /** What a caller would have got: JSON, or text where it is none. */
  response: Schema.Json
}).annotate({ identifier: "SelfTestReply" })

export class AdminSelfTestGroup extends HttpApiGroup.make("admin-self-test").add(
  HttpApiEndpoint.post("test", "/admin/test", { payload: SelfTestRequest, success: SelfTestReply }).annotateMerge(
    documented({
      summary: "Send a request through the gateway itself",
      errors: [...reading, ...bodies],
      example: { model: "upstream-chat", message: "Hello" }
    })
  )
).middleware(AdminEdge).annotate(OpenApi.Description, "Operators: self-test") {}
