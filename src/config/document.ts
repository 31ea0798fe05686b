/**
 * The whole document of the configuration, and the accounts in it. The admin API's contract has no part in it, so that the console does not load
 * it.
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { namesVariable } from "./referenceNames.ts"
import {
  AccountUse,
  Currency,
  DatedPrices,
  described,
  filledText,
  flag,
  group,
  HashedKeyEntry,
  Host,
  integer,
  KeyEntry,
  KeyRecordEntry,
  longestNote,
  MessagesMapping,
  ModelFactsEntry,
  PriceEntry,
  regionForm,
  regionRule,
  RouteEntry,
  RouteTargets,
  secret,
  settingGroups,
  StoreGroup,
  text,
  UpstreamEntry,
  Webhooks
} from "./schema.ts"

/** A text of a form, or one that names a variable whose value has it. */
const formed = (form: RegExp, rule: string) =>
  filledText.check(Schema.makeFilter((value) => namesVariable(value) || form.test(value) ? undefined : rule))

/** The address of a token server. */
const serverOnly = filledText.check(
  Schema.makeFilter((value) =>
    /^https:\/\/[^/?#@]+\/?$|^http:\/\/(?:localhost|127\.0\.0\.1)(?::\d+)?\/?$/.test(value)
      ? undefined
      : "must be an https address without a path"
  )
)

/** Where the token of an account comes from, each kind by its name in `from`. */
export const credentialKinds = {
  file: group({
    from: Schema.Literal("file"),
    path: described(filledText, "File with the token. It is read again when it changes.")
  }),
  command: group({
    from: Schema.Literal("command"),
    run: described(
      Schema.Array(filledText.annotate(secret)).annotate({ message: "must be a list of a program and its arguments" })
        .check(
          Schema.makeFilter((run) => run.length === 0 || run.length > 64 ? "must have 1 to 64 entries" : undefined)
        ),
      "Program and its arguments, without a shell. It prints the token."
    ),
    for: Schema.optionalKey(
      described(integer(1, 31_536_000), "Life of a token in seconds. Unset: until the upstream refuses it.")
    ),
    timeout: Schema.optionalKey(described(integer(1, 25), "Seconds in which the program has to end. Unset: 10."))
  }),
  google: group({
    from: Schema.Literal("google"),
    file: Schema.optionalKey(
      described(filledText, "File of a service account, a user or an external account. Unset: the metadata server.")
    ),
    scope: Schema.optionalKey(
      described(filledText, "Scopes of the token, with blanks between them. Unset: `cloud-platform`.")
    )
  }),
  entra: group({
    from: Schema.Literal("entra"),
    tenant: Schema.optionalKey(
      described(filledText, "Tenant of the client. Unset: the managed identity of this computer.")
    ),
    client: Schema.optionalKey(described(filledText, "Id of the client, or of a managed identity.")),
    secret: Schema.optionalKey(described(filledText.annotate(secret), "Secret of the client.")),
    federated_file: Schema.optionalKey(
      described(filledText, "File with a token that stands for the client, in place of a secret.")
    ),
    certificate_file: Schema.optionalKey(
      described(filledText, "PEM file with the client's certificate and its private key, in place of a secret.")
    ),
    scope: Schema.optionalKey(
      described(filledText, "Scope of the token. Unset: `https://cognitiveservices.azure.com/.default`.")
    ),
    authority: Schema.optionalKey(
      described(serverOnly, "Address of the token server. Unset: `https://login.microsoftonline.com`.")
    )
  }).check(
    Schema.makeFilter(({ certificate_file, client, federated_file, secret, tenant }) => {
      const proofs = [secret, certificate_file, federated_file].filter((each) => each !== undefined).length
      if (tenant === undefined) {
        return proofs === 0 ? undefined : "must have a tenant beside secret, certificate_file or federated_file"
      }
      return client === undefined || proofs !== 1
        ? "must have a client and one of secret, certificate_file and federated_file beside tenant"
        : undefined
    })
  ),
  aws: group({
    from: Schema.Literal("aws"),
    key: Schema.optionalKey(described(filledText.annotate(secret), "Id of an access key, beside `secret`.")),
    secret: Schema.optionalKey(described(filledText.annotate(secret), "Secret of the access key.")),
    profile: Schema.optionalKey(described(filledText, "Profile of the files of AWS that has the keys.")),
    web_identity_file: Schema.optionalKey(
      described(filledText, "File with a token that stands for `role`, in place of keys.")
    ),
    role: Schema.optionalKey(
      described(
        formed(/^arn:[\w-]+:iam::\d+:role\/./, "must be the ARN of a role"),
        "ARN of the role that the keys assume. Unset: the keys sign themselves."
      )
    ),
    session: Schema.optionalKey(
      described(
        formed(/^[\w+=,.@-]{2,64}$/, "must have 2 to 64 characters of a-z, A-Z, 0-9 and _+=,.@-"),
        "Name of the role's session, by which bills and trails of AWS name it. Unset: `model-gateway`."
      )
    ),
    external_id: Schema.optionalKey(described(filledText, "External id that the role asks for.")),
    region: Schema.optionalKey(
      described(
        formed(regionForm, regionRule),
        "Region of the token service. Unset: as the environment or the profile says, else `us-east-1`."
      )
    ),
    sts: Schema.optionalKey(
      described(serverOnly, "Address of the token service. Unset: `https://sts.REGION.amazonaws.com`.")
    )
  }).check(
    Schema.makeFilter(({ external_id, key, profile, role, secret, session, web_identity_file }) =>
      (key === undefined) !== (secret === undefined)
        ? "must have key and secret together"
        : [key, profile, web_identity_file].filter((each) => each !== undefined).length > 1
        ? "must have one of key, profile and web_identity_file"
        : role === undefined && [web_identity_file, session, external_id].some((each) => each !== undefined)
        ? "must have a role beside web_identity_file, session or external_id"
        : web_identity_file !== undefined && external_id !== undefined
        ? "must have no external_id beside web_identity_file"
        : undefined
    )
  )
}

const credentialNames = Struct.keys(credentialKinds)

/** The source of an account's token. */
export const CredentialEntry = Schema.Union(Object.values(credentialKinds)).annotate({
  message: `must be an object whose from is one of ${credentialNames.join(", ")}`
})

/** An account of the pool. A `disabled` account stays in the file and is not used. */
export const AccountEntry = group({
  upstream: Schema.optionalKey(
    described(text, "Name of the account's upstream. Unset: `default`, the group `upstream`.")
  ),
  email: Schema.optionalKey(text),
  mobile: Schema.optionalKey(text),
  password: Schema.optionalKey(text),
  token: Schema.optionalKey(text),
  credential: Schema.optionalKey(
    described(CredentialEntry, "Where a token comes from that is renewed, in place of `token` and of a login.")
  ),
  disabled: Schema.optionalKey(flag),
  proxy: Schema.optionalKey(
    described(text, "Proxy of this account's requests, or `direct` to use none. Unset: the upstream's.")
  ),
  organization: Schema.optionalKey(
    described(
      text.check(Schema.isMaxLength(longestNote, { message: `must have at most ${longestNote} characters` })),
      "Accounts of one upstream with the same text can read one another's signed reasoning. Unset: what the server says in the header " +
        "`openai-organization`, else the account alone."
    )
  ),
  ...AccountUse,
  note: Schema.optionalKey(
    text.check(Schema.isMaxLength(longestNote, { message: `must have at most ${longestNote} characters` }))
  )
})

const optional = Schema.optionalKey

/** The format of the configuration. */
export const configFormat = 1

/** All known fields. Other fields are kept, with a warning. */
export const ConfigDocument = Schema.Struct({
  $schema: optional(
    Schema.String.annotate({ description: "The JSON Schema of this file, which editors use for completion." })
  ),
  format: optional(
    Schema.Literal(configFormat).annotate({
      description: "The format of this file. A version refuses another one than its own."
    })
  ),
  keys: optional(
    Schema.Array(Schema.Union([KeyEntry, HashedKeyEntry])).annotate({
      description: "Gateway keys, with which clients authenticate, or their hashes."
    })
  ),
  key_records: optional(
    Schema.Record(Schema.String, KeyRecordEntry).annotate({ description: "What keys may do, by key id." })
  ),
  accounts: optional(Schema.Array(AccountEntry).annotate({ description: "Accounts of the pool." })),
  ...Struct.map(settingGroups, Schema.optionalKey),
  upstreams: optional(
    Schema.Record(Schema.String, UpstreamEntry).annotate({ description: "Additional upstreams, by name." })
  ),
  routes: optional(
    Schema.Record(Schema.String, Schema.Union([RouteTargets, RouteEntry])).annotate({
      description: "Models that several upstreams serve, by name, each with its targets in order."
    })
  ),
  prices: optional(
    Schema.Record(Schema.String, Schema.Union([PriceEntry, DatedPrices, Schema.Boolean])).annotate({
      description:
        "Prices by model or `upstream/model`; `*` at the end of a name matches any ending. A list has prices by their dates. `list: false` switches the vendors' list prices off."
    })
  ),
  model_facts: optional(
    Schema.Record(Schema.String, ModelFactsEntry).annotate({
      description:
        "Facts of models by name or `upstream/model`, for models whose entries and servers do not say them; `*` at the end of a name matches any ending."
    })
  ),
  webhooks: optional(Webhooks.annotate({ description: "Where events of this gateway are sent." })),
  currency: optional(described(Currency, "Currency of prices and costs: a code of three letters.")),
  msgcompat_model_mapping: optional(
    MessagesMapping.annotate({ description: "The older name of `msgcompat_mapping`." })
  ),
  host: optional(Host),
  store: optional(StoreGroup)
})

/** A configuration as embedders write it: the fields of the file, all optional. */
export type ConfigInput = typeof ConfigDocument.Encoded

/** The JSON Schema (draft 2020-12) of the file, for editors. It forbids unknown fields. */
export const configJsonSchema = (): Schema.Json => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(ConfigDocument, { onExcessProperty: "error" })
  const document: unknown = {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Configuration of the Model Gateway",
    ...schema,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions })
  }
  return Schema.decodeUnknownSync(Schema.Json)(document)
}
