/** The nodes at work. */
import * as Effect from "effect/Effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { Nodes } from "../../cluster/nodes/Nodes.ts"
import { apiId } from "../../http/reply.ts"
import { AdminNodesGroup } from "./Api.ts"

export const AdminNodesHandlers = HttpApiBuilder.group(
  HttpApi.make(apiId).add(AdminNodesGroup),
  "admin-nodes",
  Effect.fnUntraced(function*(handlers) {
    const nodes = yield* Nodes
    return handlers.handle("nodes", () =>
      Effect.map(nodes.list, (list) => ({
        success: true,
        node: nodes.id,
        store: nodes.store() ?? null,
        nodes: list
      })))
  })
)
