/**
 * The configuration file as schemas: its groups with their defaults, ranges and error messages, and the whole document.
 *
 * Undeclared fields are ignored when decoding. They survive a save because the gateway saves the file's own object, patched,
 * and never an encoding of these schemas.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { driverNames, protocolNames } from "../contracts/drivers.ts"
import { cloudNames } from "../contracts/names.ts"
import { addressPrivacies, parseRange } from "../domain/addresses.ts"
import { sessionPrivacies } from "../domain/clientIdentity.ts"
import { parseDecimal } from "../domain/decimal.ts"
import { noLabel } from "../domain/identity.ts"
import { type LimitRange, limitRanges } from "../domain/limits.ts"
import { effortLevels, longestDescription, longestName, modalities, schemaBindings } from "../domain/modelFacts.ts"
import { parseTimestamp } from "../domain/time.ts"
import { alsoOnNames } from "../domain/tries.ts"
import type { PieceUnit, TokenUnit } from "../domain/units.ts"
import { windowNames } from "../domain/windowNames.ts"
import { namesVariable } from "./referenceNames.ts"
import { parseStoredPassword } from "./storedPassword.ts"

export const text = Schema.String.annotate({ message: "must be a string" })
export const flag = Schema.Boolean.annotate({ message: "must be true or false" })

const oneOf = <const L extends ReadonlyArray<string>>(literals: L) =>
  Schema.Literals(literals).annotate({
    message: `must be ${literals.length === 1 ? "" : "one of "}${literals.join(", ")}`
  })

const number = (minimum: number, maximum: number) =>
  Schema.Number.annotate({ message: "must be a number" }).check(
    Schema.isFinite({ message: "must be a number" }).abort(),
    Schema.isBetween({ minimum, maximum }, { message: `must be between ${minimum} and ${maximum}` })
  )

export const integer = (minimum: number, maximum: number) =>
  Schema.Number.annotate({ message: "must be an integer" }).check(
    Schema.isInt({ message: "must be an integer" }).abort(),
    Schema.isBetween({ minimum, maximum }, { message: `must be between ${minimum} and ${maximum}` })
  )

/** The number of significant digits. */
const digitsOf = (value: number): number =>
  String(value).replace(/e.*/, "").replace(".", "").replace(/^0+|0+$/g, "").length

/** A decimal number, as a number or a text, with at most 9 decimals. */
const decimal = (minimum: number, maximum: number) => {
  const [least, most] = [BigInt(minimum) * 10n ** 9n, BigInt(maximum) * 10n ** 9n]
  return Schema.Union([Schema.Number, Schema.String]).annotate({ message: "must be a decimal number" }).check(
    Schema.makeFilter((value) => {
      // More digits may have been changed by the parser of JSON.
      if (typeof value === "number" && digitsOf(value) > 15) return "must be a text to keep more than 15 digits exactly"
      const amount = parseDecimal(value)
      if (amount === undefined) return "must be a decimal number of at least 0 with at most 9 decimals"
      return amount < least || amount > most ? `must be between ${minimum} and ${maximum}` : undefined
    })
  )
}

const withDefault = <S extends Schema.Constraint>(schema: S, value: S["Type"]) =>
  Schema.withDecodingDefaultTypeKey<S>(Effect.succeed(value))(schema)

export const group = <const Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotate({ message: "must be an object" })

/** Adds the description that forms show. A field without one is in no form. */
export const described = <S extends Schema.Top>(schema: S, description: string) => schema.annotate({ description })

/** Marks a field whose values are secrets: forms do not show what is typed into it. */
export const secret = { sensitive: true } as const

const maxCount = Number.MAX_SAFE_INTEGER

/** Maximum length of an account's note. */
export const longestNote = 200

/** Maximum of a limit. */
const mostInWindow = 1_000_000_000_000

/** What a limit of a key and a budget have in common. */
const inWindow = {
  window: described(oneOf(windowNames), "Time in which the limit counts, in UTC; a week begins on Monday."),
  requests: Schema.optionalKey(described(integer(1, mostInWindow), "Requests in the window.")),
  tokens: Schema.optionalKey(described(integer(1, mostInWindow), "Tokens of prompts and replies in the window.")),
  strict: Schema.optionalKey(
    described(
      flag,
      "Whether requests reserve the most that they can use, so that the limit holds whatever they generate."
    )
  )
}

const limitedCost = decimal(0, mostInWindow).check(
  Schema.makeFilter((cost) => parseDecimal(cost) === 0n ? "must be above 0" : undefined)
)

const limitsSomething = Schema.makeFilter<
  { readonly cost?: unknown; readonly requests?: unknown; readonly tokens?: unknown }
>(({ cost, requests, tokens }) =>
  requests === undefined && tokens === undefined && cost === undefined
    ? "must limit requests, tokens or cost"
    : undefined
)

const windowsOnce = Schema.makeFilter<ReadonlyArray<{ readonly window: string }>>((limits) =>
  new Set(limits.map((limit) => limit.window)).size < limits.length ? "must name each window once" : undefined
)

/** A budget of an account or an upstream in a window. */
export const BudgetEntry = group({
  ...inWindow,
  cost: Schema.optionalKey(
    described(limitedCost, "Decimal number in the configured currency, as a number or a text.")
  )
}).check(limitsSomething)

const budgetsField = (description: string) =>
  Schema.optionalKey(
    described(
      Schema.Array(BudgetEntry).annotate({ message: "must be an array of budgets" }).check(windowsOnce),
      description
    )
  )

/** How the pool uses an account. */
export const AccountUse = {
  priority: Schema.optionalKey(
    described(
      integer(-1_000, 1_000),
      "Of an upstream whose `choose` is `fill_first`: higher ones are used first. Unset: 0."
    )
  ),
  weight: Schema.optionalKey(
    described(integer(1, 1_000), "Share of the requests of an upstream whose `choose` is `weighted`. Unset: 1.")
  ),
  budgets: budgetsField("What the account may use in a window. At a budget it is out until the window ends.")
}

export const filledText = text.check(
  Schema.makeFilter((value) => value.trim() === "" ? "must not be empty" : undefined)
)

/** The name of a region of a cloud, which is a part of addresses. */
export const regionForm = /^[a-z][a-z0-9-]{1,31}$/
export const regionRule = "must be the name of a region, such as eu-central-1"

/** A gateway key that is known by its hash. */
export const HashedKeyEntry = group({
  hash: text.check(Schema.isPattern(/^sha256:[0-9a-f]{64}$/, { message: "must be sha256: and 64 hex digits" })),
  preview: withDefault(
    text.check(Schema.isMaxLength(40, { message: "must have at most 40 characters" })),
    ""
  )
})

export const KeyEntry = text.check(
  Schema.makeFilter((key) =>
    key.trim() === ""
      ? "must not be empty"
      : namesVariable(key)
      ? "must be the key itself: no variable of the environment is replaced in keys"
      : undefined
  )
)

/** Whether a conversation prefers the account that answered its last turn, and its target too. `auto`: at servers, which keep prompts warm. */
const stickinessRule = { message: "must be true, false, auto or target" }
const Stickiness = Schema.Union([
  Schema.Boolean.annotate(stickinessRule),
  Schema.Literals(["auto", "target"]).annotate(stickinessRule)
]).annotate(stickinessRule)

const shortText = (characters: number) =>
  text.check(
    Schema.makeFilter((value) =>
      value.trim().length > 2 * characters || [...value.trim()].length > characters
        ? `must have at most ${characters} characters`
        : undefined
    )
  )

const timestamp = text.check(
  Schema.makeFilter((value) =>
    parseTimestamp(value) === undefined
      ? "must be an RFC 3339 time with its zone, such as 2027-01-31T00:00:00Z"
      : undefined
  )
).annotate({ format: "date-time" })

/** The limits of a key in a window. */
export const KeyLimitEntry = group({
  ...inWindow,
  cost: Schema.optionalKey(
    described(
      limitedCost,
      "Decimal number in the configured currency, as a number or a text. The key may use priced models only."
    )
  ),
  fallback: Schema.optionalKey(
    described(
      text.check(Schema.makeFilter((name) => name.trim() === "" ? "must not be empty" : undefined)),
      "Model or route that serves requests beyond the limit. Unset: they are refused."
    )
  )
}).check(limitsSomething)

/** Maximum number of prices. */
export const mostPrices = 20_000

const price = (description: string) => Schema.optionalKey(described(decimal(0, 1_000_000_000), description))

/** Prices of units: of a million tokens, or of one piece. */
const unitPrices = {
  input: price("Price of a million tokens of prompts."),
  cached_input: price("Price of a million cached tokens of prompts. Unset: `input`."),
  output: price("Price of a million tokens of replies."),
  per_request: price("Price of each request."),
  cache_write: price("Price of a million tokens that the cache keeps for five minutes. Unset: `input`."),
  cache_write_1h: price(
    "Price of a million tokens that the cache keeps for an hour. Unset: `cache_write`, then `input`."
  ),
  reasoning: price("Price of a million tokens of reasoning. Unset: `output`."),
  audio_input: price("Price of a million tokens of sound in prompts. Unset: `input`."),
  audio_cached_input: price(
    "Price of a million cached tokens of sound. Unset: `cached_input`, then `audio_input`, then `input`."
  ),
  audio_output: price("Price of a million tokens of sound in replies. Unset: `output`."),
  image_input: price("Price of a million tokens of pictures in prompts. Unset: `input`."),
  image_output: price("Price of a million tokens of pictures in replies. Unset: `output`."),
  per_image: price("Price of each picture that is made."),
  per_input_image: price("Price of each picture of a prompt. The gateway counts those of the request."),
  per_second: price("Price of each second of sound."),
  per_character: price("Price of each character that is spoken."),
  per_query: price("Price of each search unit of a rerank."),
  per_page: price("Price of each page. No reply that the gateway reads states pages.")
} satisfies { readonly [Unit in TokenUnit | PieceUnit]: unknown }

/** Maximum numbers of names within a price, and of steps and dated prices in a list. */
const [mostNames, mostSteps] = [64, 16]

/** The fields of a price that have fields of their own. Forms do not show them. */
const namedDecimals = (what: string, minimum: number) =>
  Schema.Record(Schema.String, decimal(minimum, 1_000_000_000)).annotate({ message: "must be an object" }).check(
    Schema.isMaxProperties(mostNames, { message: `must have at most ${mostNames} ${what}` })
  )

const levelPrices = { ...unitPrices, per_tool_call: Schema.optionalKey(namedDecimals("tools", 0)) }

const hasPrice = Schema.makeFilter((entry: object) =>
  Object.keys(entry).some((name) => Object.hasOwn(levelPrices, name) || name === "above" || name === "tiers")
    ? undefined
    : "must have at least one price"
)

/** Prices of requests whose prompt exceeds so many tokens. */
const PriceStep = group({ tokens: integer(1, 1_000_000_000), ...levelPrices })

const above = Schema.optionalKey(
  Schema.Array(PriceStep).annotate({ message: "must be an array of steps" }).check(
    Schema.isMaxLength(mostSteps, { message: `must have at most ${mostSteps} steps` }),
    Schema.makeFilter((steps) =>
      new Set(steps.map(({ tokens }) => tokens)).size < steps.length
        ? "must name each number of tokens once"
        : undefined
    )
  )
)

/** The day or time from which a price counts, in Unix milliseconds; `undefined` for another text. */
export const priceStart = (from: string): number | undefined =>
  parseTimestamp(/^\d{4}-\d{2}-\d{2}$/.test(from) ? `${from}T00:00:00Z` : from)

/** The price of a model, whose name is its key in `prices`. */
export const PriceEntry = group({
  ...levelPrices,
  from: Schema.optionalKey(
    text.check(
      Schema.makeFilter((from) =>
        priceStart(from) === undefined
          ? "must be a day, such as 2027-01-31, or an RFC 3339 time with its zone"
          : undefined
      )
    )
  ),
  above,
  tiers: Schema.optionalKey(
    Schema.Record(Schema.String, group({ ...levelPrices, above }).check(hasPrice)).annotate({
      message: "must be an object"
    }).check(Schema.isMaxProperties(mostNames, { message: `must have at most ${mostNames} tiers` }))
  ),
  factors: Schema.optionalKey(
    Schema.Record(Schema.String, namedDecimals("values", 0)).annotate({ message: "must be an object" }).check(
      Schema.isMaxProperties(mostNames, { message: `must have at most ${mostNames} fields` })
    )
  )
}).check(hasPrice)

/** The prices of a model, each from a day or a time on. */
export const DatedPrices = Schema.Array(PriceEntry).annotate({ message: "must be an object or an array of objects" })
  .check(
    Schema.isBetweenLength(1, mostSteps, { message: `must have 1 to ${mostSteps} prices` }),
    Schema.makeFilter((entries) =>
      new Set(entries.map(({ from }) => from === undefined ? undefined : priceStart(from))).size < entries.length
        ? "must have each beginning once"
        : undefined
    )
  )

/** The most webhooks, and the most entries of `events`. */
export const mostWebhooks = 16
const mostEvents = 32

/** Where events are sent. */
export const WebhookEntry = group({
  name: described(
    text.check(
      Schema.isPattern(/^[a-z][a-z0-9-]{0,31}$/, {
        message: "must be 1 to 32 lower-case letters, digits and hyphens, and begin with a letter"
      })
    ),
    "Name of the webhook."
  ),
  url: described(text, "Address that gets each event as a POST."),
  secret: text.annotate({
    description: "What signs the events: `whsec_` and 24 to 64 bytes in Base64.",
    ...secret
  }),
  secret_previous: Schema.optionalKey(
    text.annotate({
      description: "A second secret, which signs too while the receiver changes to the new one.",
      ...secret
    })
  ),
  headers: withDefault(
    Schema.Record(Schema.String, text).annotate({
      message: "must be an object",
      description: "Headers of every delivery.",
      ...secret
    }),
    {}
  ),
  events: Schema.optionalKey(
    Schema.Array(text).annotate({
      message: "must be a list of events",
      description: "Events that are sent: names, or the beginning of names before a `*`. Unset: all."
    }).check(Schema.isBetweenLength(1, mostEvents, { message: `must have 1 to ${mostEvents} events` }))
  )
})

export const Webhooks = Schema.Array(WebhookEntry).annotate({ message: "must be an array of webhooks" }).check(
  Schema.isMaxLength(mostWebhooks, { message: `must have at most ${mostWebhooks} webhooks` })
)

/** The currency of prices and costs. */
export const Currency = text.check(
  Schema.isPattern(/^[A-Za-z]{3}$/, { message: "must be a code of three letters, such as USD" })
)

/** Permissions of a business key. `null` fields are removed before decoding. */
export const KeyRecordEntry = group({
  name: Schema.optionalKey(described(shortText(100), "Who or what uses the key.")),
  label: Schema.optionalKey(
    described(
      shortText(100).check(
        Schema.makeFilter((label) =>
          label.trim() === noLabel ? `must be another text: ${noLabel} stands for keys without a label` : undefined
        )
      ),
      "What the usage of several keys is summed by, such as a team."
    )
  ),
  note: Schema.optionalKey(described(shortText(1000), "A note for operators.")),
  disabled: Schema.optionalKey(described(flag, "Whether the key is refused.")),
  expires_at: Schema.optionalKey(
    described(timestamp, "RFC 3339 with its zone; from then on the key is refused.")
  ),
  models: Schema.optionalKey(
    described(
      Schema.Array(text.check(Schema.makeFilter((name) => name.trim() === "" ? "must not be empty" : undefined)))
        .annotate({ message: "must be an array of 1 to 100 model names" })
        .check(Schema.isBetweenLength(1, 100, { message: "must have 1 to 100 model names" })),
      "Models that the key may use. Unset: all."
    )
  ),
  max_inflight: Schema.optionalKey(described(integer(1, 200_000), "Concurrent requests of the key.")),
  class: Schema.optionalKey(
    described(
      oneOf(["interactive", "background"]),
      "Whether the key may use what upstreams reserve of their quotas; `interactive`, the default, may."
    )
  ),
  limits: Schema.optionalKey(
    described(
      Schema.Array(KeyLimitEntry).annotate({ message: "must be an array of limits" }).check(windowsOnce),
      "Limits of requests, tokens, cost or several of them in a window."
    )
  ),
  created_at: Schema.optionalKey(timestamp)
})

export const MessagesMapping = group({
  fast: withDefault(described(text, "Model behind the fast names of the Messages API."), "upstream-chat"),
  slow: withDefault(described(text, "Model behind the slow names of the Messages API."), "upstream-reasoner")
})

export const ModelAliases = Schema.Record(Schema.String, text).annotate({
  message: "must be an object",
  description: "Names that clients may use, each with the model that it stands for."
})

/** What the operators of a credential may do: everything, or read all but secrets, exports and bodies of requests. */
export const roles = ["admin", "viewer"] as const

export type Role = (typeof roles)[number]

/** Bounds the tokens for the admin API: a credential is compared with each. */
const mostTokens = 100

/** A token for the admin API. Fields without a description are made by the gateway. */
export const AdminTokenEntry = group({
  id: text.check(
    Schema.isPattern(/^[\w-]{1,64}$/, { message: "must be 1 to 64 letters, digits, hyphens and underscores" })
  ),
  name: described(
    shortText(100).check(Schema.makeFilter((name) => name.trim() === "" ? "must not be empty" : undefined)),
    "1 to 100 characters."
  ),
  role: described(oneOf(roles), "What the token may do: a `viewer` changes nothing."),
  hash: text.check(Schema.isPattern(/^[0-9a-f]{64}$/i, { message: "must be the token's SHA-256 as 64 hex digits" })),
  expires_at: Schema.optionalKey(described(timestamp, "RFC 3339. Unset: the token does not expire."))
})

const unlike = (field: "id" | "hash") =>
  Schema.makeFilter((tokens: ReadonlyArray<typeof AdminTokenEntry.Type>) =>
    new Set(tokens.map((token) => token[field].toLowerCase())).size < tokens.length
      ? `must have each ${field} once`
      : undefined
  )

/**
 * `password_hash` is the scrypt hash of the admin password. Every password change increments `generation`, which JWTs
 * carry. `password_check` is one byte of the password's HMAC, together with its hash and secret.
 */
export const Admin = group({
  locked: withDefault(
    described(flag, "Whether the admin API and the console may not change the configuration, but by its file."),
    false
  ),
  jwt_expire_hours: withDefault(described(integer(1, 720), "Hours that a login lasts unless it asks for less."), 24),
  // A malformed hash would lock everybody out, because the environment's key is accepted only without a hash.
  password_hash: Schema.optionalKey(text.check(
    Schema.makeFilter((hash) =>
      hash === "" || parseStoredPassword(hash) !== undefined
        ? undefined
        : "must be a hash that the gateway made of a password: scrypt$N$r$p$salt$hash"
    )
  )),
  password_check: Schema.optionalKey(text),
  jwt_valid_after_unix: withDefault(integer(0, maxCount), 0),
  generation: withDefault(integer(0, maxCount), 0),
  tokens: withDefault(
    Schema.Array(AdminTokenEntry).annotate({ message: "must be an array of tokens" }).check(
      Schema.isMaxLength(mostTokens, { message: `must have at most ${mostTokens} tokens` }),
      unlike("id"),
      unlike("hash")
    ),
    []
  )
})

export const Runtime = group({
  account_max_inflight: Schema.optionalKey(described(integer(1, 256), "Concurrent requests of one account.")),
  account_max_queue: Schema.optionalKey(
    described(
      integer(0, 200_000),
      "Requests that may wait for an account; 0 disables the queue. Unset: as many as all accounts serve concurrently."
    )
  ),
  global_max_inflight: Schema.optionalKey(
    described(
      integer(1, 200_000),
      "Concurrent requests over all accounts. Unset: as many as the accounts allow."
    )
  ),
  token_refresh_interval_hours: withDefault(
    described(integer(1, 720), "Hours between logins of an account, which happen in the background."),
    6
  ),
  key_max_inflight: Schema.optionalKey(
    described(integer(1, 200_000), "Concurrent requests of one key, for keys without a number of their own.")
  ),
  sticky: withDefault(
    Stickiness.annotate({
      description:
        "A conversation prefers the account that answered its last turn, which has the prompt cached, or the target too. `auto`: at servers."
    }),
    "auto"
  )
})

export const Compat = group({
  wide_input_strict_output: withDefault(
    described(flag, "The Responses API accepts both `input` and `messages`; off: only `messages`."),
    true
  ),
  strip_reference_markers: withDefault(
    described(flag, "Remove reference markers from the replies of search models."),
    true
  ),
  family_models: withDefault(
    described(
      flag,
      "Names of well-known families (`gpt-…`, `claude-…`, `gemini-…`) stand for a native model; off: they are unknown."
    ),
    true
  )
})

export const Responses = group({
  store_ttl_seconds: withDefault(described(integer(30, 86_400), "How long a response is stored, in seconds."), 900)
})

/** Any provider name is valid; an unsupported one fails requests for embeddings. */
export const Embeddings = group({
  provider: withDefault(
    described(
      text,
      "Who makes embeddings: `builtin` (the gateway itself, for tests) or `upstream` (an upstream with the driver `openai`, `responses` or `generate`). Empty: embeddings are disabled."
    ),
    ""
  )
})

/** `sessions: true` is the older form of `mode: "all"`. */
export const AutoDelete = group({
  mode: Schema.optionalKey(
    described(
      oneOf(["none", "single", "all"]),
      "Upstream sessions to delete after a request: none, its own, or all of the account."
    )
  ),
  sessions: Schema.optionalKey(flag)
})

export const Timeouts = group({
  connect: withDefault(described(number(0.01, 86_400), "Seconds to connect to the upstream."), 10),
  first_byte: withDefault(described(number(0.01, 86_400), "Seconds until the upstream begins to reply."), 30),
  silence: withDefault(described(number(0.01, 86_400), "Longest silence in a reply of the upstream, in seconds."), 120),
  queue: withDefault(described(number(0, 86_400), "Seconds that a request may wait for an account."), 60),
  client: withDefault(
    described(number(0.01, 86_400), "Disconnect a client that reads nothing for this many seconds."),
    120
  ),
  drain: withDefault(
    described(number(0, 86_400), "Seconds that open requests have to finish when the gateway stops."),
    120
  ),
  attempts: withDefault(described(number(0.01, 86_400), "Seconds that all attempts of a request have together."), 120)
})

/** A list of words, each once. */
const wordsOf = <const Words extends ReadonlyArray<string>>(words: Words, description: string) =>
  Schema.optionalKey(
    Schema.Array(oneOf(words)).annotate({ message: `must be a list of ${words.join(", ")}`, description }).check(
      Schema.makeFilter((list) => new Set(list).size < list.length ? "must name each word once" : undefined)
    )
  )

const tokens = (description: string) => Schema.optionalKey(described(integer(1, 1_000_000_000), description))

/** Words for people, about a model or a route. */
const shownFields = {
  display_name: Schema.optionalKey(
    described(
      shortText(longestName).check(
        Schema.makeFilter((name) => name.trim() === "" ? "must not be empty" : undefined)
      ),
      "Name for people, in lists of models."
    )
  ),
  description: Schema.optionalKey(
    described(shortText(longestDescription), "What the model is for, in lists of models.")
  )
}

const hiddenField = {
  hidden: Schema.optionalKey(
    described(flag, "Leave it out of lists of models. Its name can be asked for all the same.")
  )
}

/** Facts about a model. One that is unset is unknown, or said by another source. */
const factFields = {
  context_window: tokens("Tokens of prompt and reply together."),
  max_output_tokens: tokens("The most tokens of one reply."),
  input: wordsOf(modalities, "What the model reads."),
  output: wordsOf(modalities, "What the model writes."),
  efforts: wordsOf(effortLevels, "Levels of reasoning effort. An empty list: the model does not reason."),
  tools: Schema.optionalKey(described(flag, "Whether the model calls tools.")),
  schemas: Schema.optionalKey(
    described(
      oneOf(schemaBindings),
      "What the server does with a strict schema of the reply: every reply fits it, a reply may differ, or it does not read the schema."
    )
  ),
  prompt_cache_min_tokens: tokens("Tokens from which the server keeps the beginning of a prompt."),
  ...shownFields
}

/** The most entries of `model_facts`. */
export const mostModelFacts = 20_000

/** An entry of `model_facts`. */
export const ModelFactsEntry = group(factFields)

const modelFields = {
  model: text,
  reasoning: Schema.optionalKey(flag),
  search: Schema.optionalKey(flag),
  thinking: Schema.optionalKey(oneOf(["effort", "template", "budget", "none"])),
  max_tokens: Schema.optionalKey(integer(1, 10_000_000)),
  images: Schema.optionalKey(flag),
  api: Schema.optionalKey(oneOf(["chat", "responses", "auto"])),
  ...factFields,
  ...hiddenField
}

const ModelEntry = Schema.Union([
  text,
  group(modelFields).check(
    Schema.makeFilter(({ images, input }) =>
      images !== undefined && input !== undefined && images !== input.includes("image")
        ? "must say the same about pictures in images and input"
        : undefined
    )
  )
]).annotate({ message: `must be a model's name or an object with the fields ${Object.keys(modelFields).join(", ")}` })

/** A file or PEM text. */
const pem = (description: string) => Schema.optionalKey(text.annotate({ description, format: "pem" }))

/** What every upstream may have besides its driver's fields: whether it serves, the way to it, and its limits. */
const sharedFields = {
  vendor: Schema.optionalKey(
    described(
      oneOf(cloudNames),
      "Cloud whose server it is: it sets the address, the paths and the header of keys. `bedrock` is the endpoint Mantle."
    )
  ),
  region: Schema.optionalKey(
    described(
      text.check(Schema.makeFilter((value) => regionForm.test(value) ? undefined : regionRule)),
      "Region of a `bedrock`, `bedrock-runtime` or `vertex` server."
    )
  ),
  project: Schema.optionalKey(
    described(
      text.check(
        Schema.makeFilter((value) =>
          /^[a-z0-9][a-z0-9:.-]{1,62}$/.test(value) ? undefined : "must be the id or the number of a project"
        )
      ),
      "Project of a `vertex` server."
    )
  ),
  resource: Schema.optionalKey(
    described(
      text.check(
        Schema.makeFilter((value) =>
          /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/i.test(value) ? undefined : "must be the name of a resource"
        )
      ),
      "Resource of an `azure` server."
    )
  ),
  enabled: withDefault(described(flag, "Whether the upstream serves requests."), true),
  headers: withDefault(
    Schema.Record(Schema.String, text).annotate({
      message: "must be an object",
      description: "Headers of every request to the upstream.",
      ...secret
    }),
    {}
  ),
  bill: Schema.optionalKey(
    described(
      oneOf(["server", "prices"]),
      "Which cost counts if the server reports one: the server's, or the cost by `prices`. Unset: the server's."
    )
  ),
  credential_header: Schema.optionalKey(
    described(text, "Header that carries an account's key, unchanged. Unset: the driver's header.")
  ),
  credential: withDefault(
    described(
      oneOf(["account", "caller", "either"]),
      "Whose credential the upstream gets: an account's, the login that a client sends beside the gateway's key, or that login if there is one."
    ),
    "account"
  ),
  forward_headers: withDefault(
    Schema.Array(Schema.String).annotate({
      message: "must be a list of names",
      description: "Headers of clients that are also sent to the server: names, or the beginning of names before a `*`."
    }),
    []
  ),
  errors: withDefault(
    described(
      oneOf(["pass", "own"]),
      "Errors of a server that speaks the client's protocol: the server's refusals of the request as they came, or the gateway's own errors."
    ),
    "pass"
  ),
  choose: withDefault(
    described(
      oneOf(["rotate", "fill_first", "weighted", "spend_soonest_reset"]),
      "Which account with a free slot serves: the one used least recently, the one of the highest `priority`, each by its `weight`, or the one whose quota resets first."
    ),
    "rotate"
  ),
  reserve: Schema.optionalKey(
    described(number(0, 1), "Share of each quota window that is kept for keys of the class `interactive`. Unset: none.")
  ),
  budgets: budgetsField(
    "What all accounts of the upstream may use in a window. At a budget it is passed over until the window ends."
  ),
  rate_limit_headers: withDefault(
    described(
      oneOf(["auto", "always", "never"]),
      "Rate-limit headers of the server in replies: where one account alone can answer, of the account that answered, or none."
    ),
    "auto"
  ),
  proxy: Schema.optionalKey(
    described(text, "Proxy for connections to the upstream, or `direct` to use none. Unset: the environment's.")
  ),
  tls: Schema.optionalKey(
    group({
      ca: pem("Certificates that are trusted in place of the system's: a file or PEM text."),
      cert: pem("Client certificate: a file or PEM text."),
      key: Schema.optionalKey(
        text.annotate({
          description: "Key of the client certificate: a file or PEM text.",
          format: "pem",
          ...secret
        })
      ),
      server_name: Schema.optionalKey(
        described(text, "Name that the server's certificate must have. Unset: the address's.")
      )
    })
  ),
  max_inflight: Schema.optionalKey(
    described(
      integer(1, 200_000),
      "Concurrent requests of the upstream. Unset: as many as its accounts allow."
    )
  ),
  account_max_inflight: Schema.optionalKey(
    described(
      integer(1, 256),
      "Concurrent requests of one account of the upstream. Unset: `runtime.account_max_inflight`."
    )
  ),
  account_max_queue: Schema.optionalKey(
    described(
      integer(0, 200_000),
      "Requests that may wait for an account of the upstream. Unset: `runtime.account_max_queue`."
    )
  )
}

/** How an upstream's servers keep the beginnings of prompts, and what is done for that. */
const PromptCache = group({
  ttl: Schema.optionalKey(
    described(
      integer(1, 86_400),
      "Seconds that the server caches a prompt after its last use; until then a conversation prefers its account. Unset: 300 with the messages driver, 3,600 if its marks are of an hour, and 3,600 elsewhere."
    )
  ),
  min_tokens: Schema.optionalKey(
    described(
      integer(1, 1_000_000),
      "Least tokens of a prompt that the server caches; an estimated prompt of this length gets marks. Unset: the model's `prompt_cache_min_tokens`, else 2,048 with the generate driver and 1,024 elsewhere."
    )
  ),
  breakpoints: withDefault(
    described(
      oneOf(["auto", "off"]),
      "Whether the gateway marks what a Messages server caches, for clients that set no marks of their own."
    ),
    "auto"
  ),
  mark_ttl: withDefault(described(oneOf(["5m", "1h"]), "Time that the gateway's marks request."), "5m"),
  key: Schema.optionalKey(
    described(
      text.check(
        Schema.makeFilter((value) =>
          /^(?:off|prompt_cache_key|header [!#$%&'*+.^_`|~0-9A-Za-z-]+)$/.test(value)
            ? undefined
            : "must be prompt_cache_key, header and a name, or off"
        )
      ),
      "How a server gets a name for each conversation's cache: `prompt_cache_key`, `header` and the header's name, or `off`. Unset: as the provider documents."
    )
  )
}).pipe(Schema.withDecodingDefaultKey(Effect.succeed({})))

export const UpstreamGroup = group({
  driver: withDefault(
    described(oneOf(driverNames), "API of the upstream."),
    "embedded"
  ),
  base_url: Schema.optionalKey(described(text, "Base URL of the upstream. Its query is sent with every call.")),
  models: withDefault(
    Schema.Record(Schema.String, ModelEntry).annotate({
      message: "must be an object",
      description: "Additional models, each with the name that the upstream's server has for it."
    }),
    {}
  ),
  api: Schema.optionalKey(
    described(
      oneOf(["chat", "responses", "auto"]),
      "API of completions at an OpenAI-compatible server; `auto` uses the API of the request. Unset: the driver's API."
    )
  ),
  tools: Schema.optionalKey(
    described(
      oneOf(["native", "functions", "prompt"]),
      "Whether tools are sent as API tools, as functions only, or described in the prompt."
    )
  ),
  history_reasoning: withDefault(
    described(
      oneOf(["all", "current", "none"]),
      "Turns whose reasoning is sent back to the server: all, the turns since the last question, or none."
    ),
    "all"
  ),
  fields: withDefault(
    Schema.Union([oneOf(["pass", "drop"]), Schema.Array(Schema.String)]).annotate({
      message: "must be pass, drop or a list of names",
      description:
        "Request fields that the gateway does not support: passed through, dropped, or a list of the fields that are passed."
    }),
    "pass"
  ),
  whole_replies: withDefault(
    described(
      oneOf(["whole", "streamed"]),
      "How the gateway requests a reply that the client gets as a whole: as a whole, or as a stream for servers behind proxies that end silent connections."
    ),
    "whole"
  ),
  compaction: Schema.optionalKey(
    described(
      oneOf(["auto", "server", "gateway"]),
      "Who compacts conversations of the Responses API: the server, the gateway, or the server where its accounts alone have to read the compaction. Unset: `auto`."
    )
  ),
  prompt_cache: PromptCache,
  timeouts: Timeouts.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  ...sharedFields
})

/** The most upstreams besides `upstream`, routes, targets of a route, and headers of an upstream. */
export const mostUpstreams = 64
export const mostRoutes = 1_000
export const mostTargets = 16
export const mostHeaders = 32

/** The form of an upstream's name. */
export const upstreamName = /^[a-z][a-z0-9-]{0,31}$/

/** An upstream besides `upstream`, whose name is its key in `upstreams`. */
export const UpstreamEntry = group({
  driver: described(oneOf(protocolNames), "API of the upstream."),
  base_url: UpstreamGroup.fields.base_url,
  models: UpstreamGroup.fields.models,
  api: UpstreamGroup.fields.api,
  tools: UpstreamGroup.fields.tools,
  history_reasoning: UpstreamGroup.fields.history_reasoning,
  fields: UpstreamGroup.fields.fields,
  whole_replies: UpstreamGroup.fields.whole_replies,
  compaction: UpstreamGroup.fields.compaction,
  prompt_cache: PromptCache,
  timeouts: group(Struct.pick(Timeouts.fields, ["connect", "first_byte", "silence"])).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed({}))
  ),
  ...sharedFields
})

const WeightedTarget = group({
  target: described(text, "`upstream/model`, or `upstream` for its model with the route's name."),
  weight: withDefault(described(integer(1, 1_000), "Share of the requests of a route whose `spread` is `weighted`."), 1)
})

const Targets = Schema.Array(Schema.Union([text, WeightedTarget])).annotate({
  message: "must be an array of targets",
  description:
    "Targets in order, each `upstream/model`, or `upstream` for its model with the route's name, or an object with `target` and `weight`."
}).check(
  Schema.isBetweenLength(1, mostTargets, { message: `must have 1 to ${mostTargets} targets` })
)

/** A route, whose name is its key in `routes`: its targets alone, or with other fields. */
export const RouteTargets = Targets
export const RouteEntry = group({
  targets: Targets,
  wait: withDefault(
    described(number(0, 86_400), "Seconds that a request waits at a full first target before the others count."),
    0
  ),
  also_on: withDefault(
    Schema.Array(oneOf(alsoOnNames)).annotate({
      message: "must be an array",
      description: "Also fail over when the upstream rejects the request for these reasons."
    }),
    []
  ),
  spread: withDefault(
    described(
      oneOf(["order", "even", "weighted"]),
      "Which target with a free slot is used: the first, the one with the most free slots, or each by its `weight`."
    ),
    "order"
  ),
  schemas: withDefault(
    described(
      oneOf(["preferred", "required"]),
      "Whether a request with a strict schema may go to a target that is not known to bind schemas, after those that are: with `required` it may not."
    ),
    "preferred"
  ),
  sticky: Schema.optionalKey(
    Stickiness.annotate({
      description:
        "A conversation prefers the account that answered its last turn, or the target too. Unset: `runtime.sticky`."
    })
  ),
  ...shownFields,
  ...hiddenField
})

export const Captures = group({
  enabled: withDefault(described(flag, "Record what is sent to and received from the upstream."), true),
  limit: withDefault(described(integer(1, 50), "Exchanges that are kept."), 20),
  max_body_bytes: withDefault(
    described(integer(1, 64 * 1024 * 1024), "Bytes that are kept of each body."),
    5 * 1024 * 1024
  )
})

const MiB = 1024 * 1024

export const RequestsGroup = group({
  enabled: withDefault(described(flag, "Record the requests of clients and their outcomes."), true),
  bodies: withDefault(described(flag, "Also record bodies and streams of both sides."), true),
  limit: withDefault(described(integer(1, 50_000), "Requests that are kept."), 1_000),
  max_body_bytes: withDefault(
    described(integer(1, 64 * MiB), "Bytes that are kept of each request, reply and round with the upstream."),
    MiB
  ),
  max_total_bytes: withDefault(
    described(integer(MiB, 4096 * MiB), "Bytes that all records keep together."),
    64 * MiB
  )
})

/**
 * `removed_keys` are SHA-256 digests of removed business keys, newest last. They are never exported, hashed or synced.
 */
export const Auth = group({
  direct_tokens: Schema.optionalKey(
    described(flag, "Accept direct tokens: credentials of clients for the default upstream.")
  ),
  public_models: withDefault(described(flag, "Show the lists of models without a credential."), true),
  direct_max_inflight: Schema.optionalKey(
    described(integer(1, 200_000), "Concurrent requests with such tokens.")
  ),
  hash_keys: withDefault(
    described(flag, "Keep added and generated keys as hashes. The console cannot show them again, or call with them."),
    false
  ),
  removed_keys: withDefault(
    Schema.Array(text.check(Schema.isPattern(/^[0-9a-f]{64}$/, { message: "must be a SHA-256 digest in hex" })))
      .annotate({ message: "must be a list of SHA-256 digests" }),
    []
  )
})

/** The usage history: its file (relative to the data folder) and its retention in days. */
export const UsageGroup = group({
  enabled: withDefault(described(flag, "Keep a history of who used what."), true),
  file: withDefault(
    described(text, "File of the history, in the data folder unless its path is absolute.").check(
      Schema.makeFilter((file) => file.trim() === "" ? "must not be empty" : undefined)
    ),
    "usage.sqlite"
  ),
  keep_days: withDefault(described(integer(1, 3650), "Days that the history is kept."), 400),
  session_days: withDefault(described(integer(1, 400), "Days that the usage of each session is kept."), 30)
})

/** The most trusted proxies. */
const mostProxies = 1_000

/** The path of a file. */
const filePath = text.check(
  Schema.makeFilter((path) =>
    path.trim() === "" || path.includes("-----BEGIN") ? "must be the path of a file in PEM" : undefined
  )
)

export const ServerGroup = group({
  tls: Schema.optionalKey(
    group({
      cert: described(filePath, "Certificates of the gateway's port in PEM: a file, read again when it changes."),
      key: described(filePath, "Key of the certificate in PEM: a file, read again when it changes."),
      client_ca: Schema.optionalKey(
        described(
          filePath,
          "Authorities whose certificates callers must have: a file in PEM. Unset: none is asked for."
        )
      ),
      client_paths: withDefault(
        described(
          oneOf(["api", "admin", "both"]),
          "Paths whose callers must have such a certificate; probes are open."
        ),
        "both"
      ),
      min_version: withDefault(described(oneOf(["TLSv1.2", "TLSv1.3"]), "The oldest version of TLS."), "TLSv1.2")
    })
  ),
  trusted_proxies: withDefault(
    Schema.Array(
      text.check(
        Schema.makeFilter((entry) =>
          parseRange(entry.trim()) === undefined
            ? "must be an IP address or a CIDR range, such as 10.0.0.0/8"
            : undefined
        )
      )
    ).annotate({
      message: "must be an array of IP addresses and CIDR ranges",
      description: "Proxies whose `X-Forwarded-For` and `X-Forwarded-Proto` count: IP addresses and CIDR ranges."
    }).check(Schema.isMaxLength(mostProxies, { message: `must have at most ${mostProxies} entries` })),
    []
  ),
  websockets: withDefault(
    described(flag, "Clients may open a WebSocket at `/v1/responses`. Otherwise such a request is answered with 426."),
    true
  )
})

export const PrivacyGroup = group({
  client_address: withDefault(
    described(
      oneOf(addressPrivacies),
      "What logs and records keep of a client's address: all, its /24 or /48, or nothing."
    ),
    "prefix"
  ),
  sessions: withDefault(
    described(
      oneOf(sessionPrivacies),
      "What logs, records and usage keep of the names that clients give to their sessions and agents: all, a hash, or nothing."
    ),
    "full"
  )
})

/** What happens between a stop signal and the drain, whose own time is one of `upstream.timeouts`. */
export const DrainGroup = group({
  notice: Schema.optionalKey(
    described(
      number(0, 86_400),
      "Seconds that the gateway continues to serve after a stop signal, while `/readyz` is 503. Unset: 5 with a shared store, 0 without."
    )
  )
})

/** The web console and its browser sessions. */
export const ConsoleGroup = group({
  enabled: withDefault(described(flag, "Serve the web console at /console/."), true)
})

/** The most characters of the instructions of an agent. */
const mostInstructions = 200_000

/** What the gateway tells agents. */
export const ClientsGroup = group({
  codex_instructions: Schema.optionalKey(
    described(
      text,
      "The prompt of codex, in the list of models that codex reads. Without it that list is empty, and codex uses its own."
    ).check(Schema.isMaxLength(mostInstructions, { message: `must have at most ${mostInstructions} characters` }))
  )
})

export const Metrics = group({
  public: withDefault(described(flag, "Show metrics without a credential."), false)
})

/** Tracing: whether traces contain prompts and replies, and whether the upstream gets the trace context. */
export const Telemetry = group({
  capture_content: withDefault(described(flag, "Export prompts and replies with traces."), false),
  propagate: withDefault(described(flag, "Send the trace context to the upstream."), false)
})

export const Samples = group({
  dir: withDefault(described(text, "Folder of raw samples."), "tests/raw_stream_samples")
})

/** State of the host sync: its credentials and the last sync. Never exported, hashed or synced. */
export const Host = group({
  token: Schema.optionalKey(Schema.RedactedFromValue(text)),
  project_id: Schema.optionalKey(text),
  team_id: Schema.optionalKey(text),
  last_synced_hash: Schema.optionalKey(text),
  last_sync_time: Schema.optionalKey(integer(0, maxCount))
})

/** The shared store. Read before everything else (`storeSettings.ts`) and never shared itself. */
export const StoreGroup = group({
  url: Schema.optionalKey(described(text, "URL of the Redis or Valkey store that several nodes share.")),
  on_loss: Schema.optionalKey(described(oneOf(["closed"]), "What happens while the store is not there.")),
  config: Schema.optionalKey(
    described(
      oneOf(["shared", "file"]),
      "What is in effect after the start of a node: `shared`, the store's configuration (the default), or `file`, the node's own, which replaces it."
    )
  )
})

const limitFields = Object.entries(limitRanges).map((
  [field, { description, maximum, minimum, value }]: [string, LimitRange]
) => [field, withDefault(described(integer(minimum, maximum), description), value)] as const)

/** Limits on data from callers and upstreams (`domain/limits.ts`). */
export const LimitsGroup = group(
  Object.fromEntries(limitFields) as { readonly [Field in keyof typeof limitRanges]: (typeof limitFields)[number][1] }
)

/** All groups of settings by name, in the order of forms. */
export const settingGroups = {
  runtime: Runtime,
  compat: Compat,
  responses: Responses,
  embeddings: Embeddings,
  auto_delete: AutoDelete,
  msgcompat_mapping: MessagesMapping,
  model_aliases: ModelAliases,
  admin: Admin,
  captures: Captures,
  requests: RequestsGroup,
  upstream: UpstreamGroup,
  auth: Auth,
  limits: LimitsGroup,
  usage: UsageGroup,
  server: ServerGroup,
  drain: DrainGroup,
  privacy: PrivacyGroup,
  console: ConsoleGroup,
  clients: ClientsGroup,
  metrics: Metrics,
  telemetry: Telemetry,
  samples: Samples
}
