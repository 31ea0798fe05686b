/**
 * The configuration file as one schema: what it may hold, for editors, for misspelt fields and for the types of embedders.
 */
import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { AccountEntry, Host, KeyEntry, KeyRecordEntry, MessagesMapping, settingGroups, StoreGroup } from "./schema.ts"

const optional = Schema.optionalKey

/** Every field that the gateway knows. Fields beside them are kept, and told as unknown. */
export const ConfigDocument = Schema.Struct({
  /** Where editors find this schema. */
  $schema: optional(Schema.String.annotate({ description: "The JSON Schema that an editor completes this file by." })),
  keys: optional(Schema.Array(KeyEntry).annotate({ description: "Business keys: what callers show." })),
  key_records: optional(
    Schema.Record(Schema.String, KeyRecordEntry).annotate({ description: "What keys may do, by key id." })
  ),
  accounts: optional(Schema.Array(AccountEntry).annotate({ description: "Accounts of the pool." })),
  ...Struct.map(settingGroups, Schema.optionalKey),
  msgcompat_model_mapping: optional(
    MessagesMapping.annotate({ description: "The older name of `msgcompat_mapping`." })
  ),
  host: optional(Host),
  store: optional(StoreGroup)
})

/** A configuration as a program writes it: the file's fields, none of them required. */
export type ConfigInput = typeof ConfigDocument.Encoded

/** The JSON Schema (draft 2020-12) of the file, for editors; a field that it does not name is a mistake there. */
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
