/** The contract alone: API documents and a typed client, without the server's modules. */
import { OpenApi } from "effect/http-api"
import { GatewayApi } from "model-gateway/api"
import assert from "node:assert/strict"

const document = OpenApi.fromApi(GatewayApi)
assert.ok(document.paths["/v1/chat/completions"]?.post)
assert.ok(document.paths["/admin/config"]?.get)
