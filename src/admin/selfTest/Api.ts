/**
 * Tests the service through itself (spec "POST /admin/test").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { AdminEdge } from "../edges.ts"

const optional = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

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
  HttpApiEndpoint.post("test", "/admin/test", { payload: SelfTestRequest, success: SelfTestReply })
).middleware(AdminEdge) {}
