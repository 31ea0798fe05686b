/**
 * Health probes as a contract (spec "Health").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { documented } from "../http/documented.ts"
import { OpenAiPublicEdge } from "../styles/shared/edges.ts"

/** The gateway takes requests; whether the upstream would serve them is told beside it, and does not decide. */
const Ready = Schema.Struct({
  status: Schema.Literal("ready"),
  accounts: Schema.Struct({ ready: Schema.Int, total: Schema.Int }),
  detail: Schema.optionalKey(Schema.String).annotate({
    description: "What is wrong with how the shared store is set up."
  })
})

export class HealthGroup extends HttpApiGroup.make("health").add(
  HttpApiEndpoint.get("healthz", "/healthz", { success: Schema.Struct({ status: Schema.Literal("ok") }) })
    .annotateMerge(documented({ summary: "Whether the process answers", errors: [] })),
  HttpApiEndpoint.get("readyz", "/readyz", { success: Ready }).annotateMerge(
    documented({ summary: "Whether the gateway takes requests", errors: ["shutting_down"] })
  )
).middleware(OpenAiPublicEdge).annotate(OpenApi.Description, "Health probes") {}
