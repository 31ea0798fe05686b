/**
 * Business keys: adding and removing them (spec "Admin endpoints").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Schema from "effect/Schema"
import { lasting } from "../changes.ts"
import { AdminEdge } from "../edges.ts"

export const AddKeyRequest = Schema.Struct({ key: Schema.String }).annotate({ identifier: "AddKeyRequest" })

export const KeysReply = Schema.Struct({ success: Schema.Boolean, total_keys: Schema.Int, ...lasting })

/** Both refuse with 400 what is empty or there already, and with 404 what is not there. */
export class AdminKeysGroup extends HttpApiGroup.make("admin-keys").add(
  HttpApiEndpoint.post("add", "/admin/keys", { payload: AddKeyRequest, success: KeysReply }),
  HttpApiEndpoint.delete("remove", "/admin/keys/:key", { params: { key: Schema.NonEmptyString }, success: KeysReply })
).middleware(AdminEdge) {}
