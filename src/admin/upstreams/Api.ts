/**
 * Upstreams: their list with what they do now, changes, tests before a change is saved, and the models of their servers.
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import { UpstreamEntry, UpstreamGroup } from "../../config/schema.ts"
import { usualDriver } from "../../contracts/drivers.ts"
import { optional } from "../../domain/schemas.ts"
import { bodies, changing, documented, finding, reading } from "../../http/documented.ts"
import { BudgetView, lasting, missingNodes, revised, Switch } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"

const JsonObject = Schema.Record(Schema.String, Schema.Json)

/** Tries of the last five minutes at all nodes. The times are those to the first event of a reply. */
const RecentTries = Schema.Struct({
  requests: Schema.Int,
  errors: Schema.Int,
  p50_ms: Schema.NullOr(Schema.Int),
  p95_ms: Schema.NullOr(Schema.Int)
}).annotate({ identifier: "RecentTries" })

/** An upstream with what it does now. */
export const UpstreamItem = Schema.Struct({
  name: Schema.String.annotate({ description: "`default` is the group `upstream` of the configuration." }),
  driver: Schema.toType(UpstreamGroup.fields.driver),
  base_url: Schema.String,
  enabled: Schema.Boolean,
  models: Schema.Array(Schema.String).annotate({ description: "The models that routes may name." }),
  needs_accounts: Schema.Boolean.annotate({
    description: "`false`: it serves without an account, and `accounts` counts the one that stands for it."
  }),
  accounts: Schema.Struct({
    ready: Schema.Int,
    cooling: Schema.Int,
    out: Schema.Int,
    disabled: Schema.Int
  }),
  in_use: Schema.Int.annotate({ description: "Slots in use." }),
  max_inflight: Schema.Int.annotate({ description: "The limit in effect." }),
  waiting: Schema.Int,
  state: Schema.Literals(["ready", "cooled", "disabled"]).annotate({
    description: "`cooled`: requests that have another target leave it out."
  }),
  cooled_until: Schema.NullOr(Schema.String),
  reason: Schema.NullOr(Schema.String).annotate({ description: "Why it is cooled, or cannot serve." }),
  findings: Schema.Array(Schema.String).annotate({
    description:
      "What the last read of the server's list of models shows: it does not answer, or lacks configured models."
  }),
  away: Schema.NullOr(Schema.Struct({
    reason: Schema.String,
    since: Schema.Int.annotate({ description: "Unix milliseconds of the first read that found it so." })
  })).annotate({ description: "Why the server does not answer, as this node sees it; `null` while it answers." }),
  refusals: Schema.Array(Schema.Struct({
    model: Schema.String,
    effect: Schema.String.annotate({ description: "What the gateway does before it sends a request." }),
    words: Schema.String.annotate({ description: "The words by which the server refuses it." }),
    until: Schema.String
  })).annotate({
    description: "What the gateway has learned in the last hour from refusals of the server. Nodes of a store share it."
  }),
  proxy: Schema.NullOr(Schema.String).annotate({ description: "The configured proxy, without its password." }),
  last_5m: RecentTries,
  last_hour: Schema.Array(Schema.Struct({ requests: Schema.Int, errors: Schema.Int })).annotate({
    description: "Tries of the last hour at all nodes: 12 steps of five minutes, the running one last."
  }),
  budgets: Schema.Array(BudgetView).annotate({ description: "Its budgets, with what is used of them." }),
  config: JsonObject.annotate({
    description: "Its entry of the configuration; secrets are `***`, which keeps them when it is sent back."
  })
}).annotate({ identifier: "Upstream" })

const UpstreamList = Schema.Struct({
  upstreams: Schema.Array(UpstreamItem),
  revision: Schema.String,
  ...missingNodes
}).annotate({ identifier: "UpstreamList" })

/** The encoded fields of an entry, all optional; `null` unsets one. */
const entryFields = (fields: Readonly<Record<string, Schema.Top>>): Readonly<Record<string, Schema.Top>> =>
  Object.fromEntries(
    Object.entries(fields).map(([name, field]) => [
      name,
      Schema.optionalKey(Schema.NullOr(Schema.make(SchemaAST.toEncoded(field.ast))))
    ])
  )

/** An entry, as a test or a change has it. */
const UpstreamFields = Schema.Struct(entryFields(UpstreamGroup.fields)) as unknown as Schema.Codec<
  { readonly [Field in keyof typeof UpstreamGroup.Encoded]?: (typeof UpstreamGroup.Encoded)[Field] | null }
>

/** Body of `POST /admin/upstreams`: an entry of `upstreams` and its name. */
export const AddUpstreamRequest = Schema.Struct({
  name: Schema.String,
  ...entryFields(UpstreamEntry.fields)
}).annotate({ identifier: "AddUpstreamRequest" }) as Schema.Codec<
  typeof UpstreamFields.Type & { readonly name: string }
>

/**
 * Body of `PATCH /admin/upstreams/{name}`: absent fields stay, `null` unsets one. `timeouts` and `tls` are changed field by field;
 * `models`, `headers` and lists are replaced as a whole.
 */
export const ChangeUpstreamRequest = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  ...entryFields(UpstreamGroup.fields)
}).annotate({ identifier: "ChangeUpstreamRequest" }) as Schema.Codec<
  typeof UpstreamFields.Type & { readonly name?: string }
>

const UpstreamSaved = Schema.Struct({ success: Schema.Boolean, upstream: UpstreamItem, ...lasting })

/** What a removal took along. */
const RemoveUpstreamReply = Schema.Struct({
  success: Schema.Boolean,
  removed: Schema.Struct({
    accounts: Schema.Array(Schema.String).annotate({ description: "Its accounts." }),
    targets: Schema.Array(Schema.String).annotate({ description: "Its targets, each as `route: target`." }),
    routes: Schema.Array(Schema.String).annotate({ description: "Routes that had no other target." })
  }),
  ...lasting
})

/**
 * The login or key of a test, which is not saved. Without one, the first enabled account of the upstream is used, if the test goes to the
 * saved address.
 */
const credential = {
  key: optional(Schema.String).annotate({ description: "API key or session token of the test." }),
  email: optional(Schema.String),
  mobile: optional(Schema.String),
  password: optional(Schema.String)
}

/** Body of `POST /admin/upstreams/test`. */
export const TestUpstreamRequest = Schema.Struct({
  upstream: UpstreamFields.annotate({ description: "The entry to test, which is not saved." }),
  ...credential
}).annotate({ identifier: "TestUpstreamRequest" })

/** Body of `POST /admin/upstreams/{name}/test`. */
export const TestChangesRequest = Schema.Struct({
  upstream: optional(UpstreamFields).annotate({ description: "Changes that are laid over, as in `PATCH`." }),
  ...credential
}).annotate({ identifier: "TestUpstreamChangesRequest" })

const TestUpstreamReply = Schema.Struct({
  success: Schema.Boolean,
  message: Schema.String.annotate({ description: "What is wrong, and what helps." }),
  response_time: Schema.Int.annotate({ description: "Milliseconds." }),
  models: Schema.NullOr(Schema.Array(Schema.String)).annotate({
    description: "The server's own names of its models; `null` if it lists none."
  })
}).annotate({ identifier: "UpstreamTestResult" })

const UpstreamModelsReply = Schema.Struct({
  models: Schema.Array(Schema.Struct({
    model: Schema.String.annotate({ description: "The server's own name." }),
    listed: Schema.Boolean.annotate({
      description: "Whether the server lists it, by its last list if `message` is set."
    }),
    ids: Schema.Array(Schema.String).annotate({ description: "The ids that are configured for it." })
  })),
  message: Schema.NullOr(Schema.String).annotate({ description: "Why the server's list cannot be read now." })
}).annotate({ identifier: "UpstreamModels" })

const params = { name: Schema.NonEmptyString }

export class AdminUpstreamsGroup extends HttpApiGroup.make("admin-upstreams").add(
  HttpApiEndpoint.get("list", "/admin/upstreams", { success: UpstreamList }).annotateMerge(documented({
    summary: "List the upstreams with what they do now",
    description: "In the order of the configuration. `revision` is for `If-Match`.",
    errors: reading
  })),
  HttpApiEndpoint.post("add", "/admin/upstreams", {
    ...revised,
    payload: AddUpstreamRequest,
    success: UpstreamSaved
  }).annotateMerge(documented({
    summary: "Add an upstream",
    description: "A name that already exists is a 409.",
    errors: changing,
    example: {
      name: "gpu",
      driver: usualDriver,
      base_url: "http://10.0.0.7:8000/v1",
      models: { qwen3: "Qwen/Qwen3-8B" }
    }
  })),
  HttpApiEndpoint.patch("change", "/admin/upstreams/:name", {
    params,
    ...revised,
    payload: ChangeUpstreamRequest,
    success: UpstreamSaved
  }).annotateMerge(documented({
    summary: "Change an upstream",
    description:
      "An absent field stays as it is, `null` unsets it, `***` keeps a secret. `timeouts` and `tls` are changed field " +
      "by field; `models`, `headers` and lists are replaced as a whole.",
    errors: [...changing, "not_found"],
    example: { enabled: false, max_inflight: 16 }
  })),
  HttpApiEndpoint.delete("remove", "/admin/upstreams/:name", {
    params,
    ...revised,
    query: { force: Schema.optionalKey(Switch) },
    success: RemoveUpstreamReply
  }).annotateMerge(documented({
    summary: "Remove an upstream",
    description:
      "A 409 while accounts or routes name it. `force=true` removes its accounts and targets too, and the routes " +
      "without any other target. `default` cannot be removed.",
    errors: [...changing, "not_found"]
  })),
  HttpApiEndpoint.post("test", "/admin/upstreams/test", { payload: TestUpstreamRequest, success: TestUpstreamReply })
    .annotateMerge(documented({
      summary: "Test an upstream that is not saved",
      errors: [...reading, ...bodies],
      example: { upstream: { driver: usualDriver, base_url: "http://10.0.0.7:8000/v1" }, key: "sk-1" }
    })),
  HttpApiEndpoint.post("testChanges", "/admin/upstreams/:name/test", {
    params,
    payload: TestChangesRequest,
    success: TestUpstreamReply
  }).annotateMerge(documented({
    summary: "Test an upstream with changes that are not saved",
    description:
      "Saved headers, the client certificate and the account's token are used only where host, port, proxy and TLS are the saved ones. " +
      "The history has the test with its address.",
    errors: [...finding, ...bodies],
    mayBeEmpty: true,
    example: { upstream: { base_url: "http://10.0.0.8:8000/v1" } }
  })),
  HttpApiEndpoint.get("models", "/admin/upstreams/:name/models", { params, success: UpstreamModelsReply })
    .annotateMerge(documented({
      summary: "List the models of an upstream's server beside the configured ones",
      errors: finding
    }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: upstreams") {}
