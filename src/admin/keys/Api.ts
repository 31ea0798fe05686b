/**
 * Business keys: their list, and adding, changing and removing them (spec "Admin endpoints").
 */
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { KeyLimitEntry, KeyRecordEntry } from "../../config/schema.ts"
import { optional, Spent, SpentCost } from "../../domain/schemas.ts"
import { windowNames } from "../../domain/windowNames.ts"
import { changing, documented, reading } from "../../http/documented.ts"
import { aboutSort, endedKey, lasting, like, pageFields, pageQuery, sortQuery } from "../contract.ts"
import { AdminMiddleware } from "../middleware.ts"
import { StoreView } from "../usage/Api.ts"

const Window = Schema.Literals(windowNames)

/** The limits of a key in a window. */
const KeyLimitView = Schema.Struct({
  window: Window.annotate({ description: "UTC; a week begins on Monday." }),
  requests: Schema.NullOr(Schema.Int),
  tokens: Schema.NullOr(Schema.Int),
  cost: Schema.optionalKey(Schema.NullOr(Schema.String)).annotate({
    description: "Decimal number in the configured currency."
  }),
  strict: Schema.Boolean,
  fallback: Schema.NullOr(Schema.String)
}).annotate({ identifier: "KeyLimit" })

const limit = KeyLimitEntry.fields

const KeyLimitRequest = Schema.Struct(
  {
    window: Window,
    requests: optional(Schema.Int),
    tokens: optional(Schema.Int),
    cost: like(limit.cost, optional(Schema.Union([Schema.Number, Schema.String]))),
    strict: like(limit.strict, optional(Schema.Boolean)),
    fallback: like(limit.fallback, optional(Schema.String))
  } satisfies Record<keyof typeof limit, unknown>
)

const record = KeyRecordEntry.fields

type Fields = Record<Exclude<keyof typeof record, "created_at">, unknown>

/** The fields of a key's record in requests. */
const recordFields = {
  name: optional(Schema.String),
  label: optional(Schema.String),
  note: optional(Schema.String),
  disabled: optional(Schema.Boolean),
  expires_at: like(record.expires_at, optional(Schema.String)),
  models: like(record.models, optional(Schema.Array(Schema.String))),
  max_inflight: like(record.max_inflight, optional(Schema.Int)),
  class: like(record.class, optional(Schema.String)),
  limits: like(record.limits, optional(Schema.Array(KeyLimitRequest)))
} satisfies Fields

/** Body of `POST /admin/keys`: exactly one of `key` and `generate`. */
export const AddKeyRequest = Schema.Struct({
  key: optional(Schema.String).annotate({ description: "The key, in any form except 16 hex digits; or `generate`." }),
  generate: optional(Schema.Boolean).annotate({ description: "Make a key: `sk-gw-` and 43 characters." }),
  ...recordFields
}).annotate({ identifier: "AddKeyRequest" })

/** Body of `PATCH /admin/keys/{id}`: an absent field stays, `null` clears it. */
export const ChangeKeyRequest = Schema.Struct(recordFields).annotate({ identifier: "ChangeKeyRequest" })

/** The usage of a key in a limited window. */
export const KeyWindowView = Schema.Struct({
  window: Window,
  started_at: Schema.String,
  resets_at: Schema.String,
  requests: Spent.annotate({ description: "`used` includes reservations for running requests." }),
  tokens: Spent,
  cost: SpentCost.annotate({ description: "Decimal numbers in the configured currency." })
}).annotate({ identifier: "KeyWindow" })

const keyStates = ["active", "disabled", "expired"] as const

/** The fields of a key's record in replies. */
const viewFields = {
  name: Schema.NullOr(Schema.String),
  label: Schema.NullOr(Schema.String),
  note: Schema.NullOr(Schema.String),
  disabled: Schema.Boolean,
  expires_at: Schema.NullOr(Schema.String),
  models: Schema.NullOr(Schema.Array(Schema.String)),
  max_inflight: Schema.NullOr(Schema.Int),
  class: Schema.NullOr(Schema.Literals(["interactive", "background"])),
  limits: Schema.Array(KeyLimitView)
} satisfies Fields

/** A key without the key itself. */
export const KeyItem = Schema.Struct({
  id: Schema.String.annotate({ description: "The first 16 hex digits of the key's SHA-256." }),
  preview: Schema.String.annotate({
    description: "The beginning of the key, then `...`; of a key that begins with `sk-gw-` the end too."
  }),
  state: Schema.Literals(keyStates),
  generated: Schema.optionalKey(Schema.Boolean).annotate({
    description: "True for the key of a start without keys. It ends when a key is added, and with the process."
  }),
  ...viewFields,
  created_at: Schema.NullOr(Schema.String),
  usage: Schema.Struct({
    in_flight: Schema.Int,
    /** The limit in effect. */
    max_inflight: Schema.NullOr(Schema.Int),
    last_used_at: Schema.NullOr(Schema.String),
    requests_today: Schema.Int.annotate({
      description: "Requests of the day in UTC that count for limits; it includes running ones."
    }),
    cost_today: Schema.String.annotate({
      description: "What the requests of the day in UTC cost: a decimal number in the configured currency."
    }),
    windows: Schema.Array(KeyWindowView)
  })
}).annotate({ identifier: "KeyItem" })

const KeyList = Schema.Struct({ items: Schema.Array(KeyItem), ...pageFields, store: StoreView }).annotate({
  identifier: "KeyList"
})

const KeysReply = Schema.Struct({ success: Schema.Boolean, total_keys: Schema.Int, ...lasting })

/** The key as the list shows it. */
const AddKeyReply = Schema.Struct({
  ...KeysReply.fields,
  ...KeyItem.fields,
  /** The generated key; no other reply has it. */
  key: Schema.optionalKey(Schema.String),
  warning: Schema.optionalKey(Schema.String).annotate({
    description: "Says that the key stays a text although `auth.hash_keys` is on, since its hash does not hide it."
  }),
  ...endedKey
})

const HashKeysReply = Schema.Struct({
  ...KeysReply.fields,
  hashed: Schema.Int.annotate({ description: "Keys that were texts." }),
  guessable: Schema.Array(Schema.String).annotate({ description: "Ids of the keys that stay texts." })
})

const RemoveKeyReply = Schema.Struct({
  ...KeysReply.fields,
  id: Schema.String.annotate({ description: "Id of the removed key." })
})

const ChangeKeyReply = Schema.Struct({ success: Schema.Boolean, key: KeyItem, ...lasting })

/** What the list can be sorted by. */
export const keySorts = [
  "id",
  "name",
  "label",
  "note",
  "state",
  "class",
  "created_at",
  "expires_at",
  "in_flight",
  "max_inflight",
  "last_used_at",
  "requests_today",
  "cost_today",
  "limit_share"
] as const

export class AdminKeysGroup extends HttpApiGroup.make("admin-keys").add(
  HttpApiEndpoint.get("list", "/admin/keys", {
    query: {
      ...pageQuery,
      ...sortQuery(keySorts),
      state: Schema.optionalKey(Schema.Literals([...keyStates, ""])),
      label: Schema.optionalKey(Schema.String)
    },
    success: KeyList
  }).annotateMerge(documented({
    summary: "List gateway keys",
    description:
      `With ids, limits and usage, without the keys themselves. ${aboutSort} \`limit_share\` is the largest used share of a limit. ` +
      "`label` is a whole label, or `none` for the keys without one.",
    errors: [...reading, "invalid_request"]
  })),
  HttpApiEndpoint.post("add", "/admin/keys", { payload: AddKeyRequest, success: AddKeyReply }).annotateMerge(
    documented({
      summary: "Add a gateway key",
      description:
        "The given key, or with `generate` a new one, which no other reply shows. The generated key of a start " +
        "without keys ends immediately.",
      errors: changing,
      example: { generate: true, name: "team a", limits: [{ window: "day", requests: 1000, tokens: 2_000_000 }] }
    })
  ),
  HttpApiEndpoint.post("hash", "/admin/keys/hash", { success: HashKeysReply }).annotateMerge(documented({
    summary: "Keep all gateway keys as hashes",
    description:
      "A key that can be guessed from its hash stays as it is, and its id is in `guessable`. No reply shows a key again.",
    errors: changing
  })),
  HttpApiEndpoint.patch("change", "/admin/keys/:id", {
    params: { id: Schema.NonEmptyString },
    payload: ChangeKeyRequest,
    success: ChangeKeyReply
  }).annotateMerge(documented({
    summary: "Change the limits and notes of a gateway key",
    description: "An absent field stays as it is, `null` clears it; lists are replaced as a whole.",
    errors: [...changing, "not_found"],
    example: { max_inflight: 4, expires_at: "2030-01-01T00:00:00Z" }
  })),
  HttpApiEndpoint.delete("remove", "/admin/keys/:key", {
    params: { key: Schema.NonEmptyString },
    success: RemoveKeyReply
  }).annotateMerge(documented({
    summary: "Remove a gateway key",
    description: "By its id, or by the key itself. The reply has the id of the removed key.",
    errors: [...changing, "not_found"]
  }))
).middleware(AdminMiddleware).annotate(OpenApi.Description, "Operators: gateway keys") {}
