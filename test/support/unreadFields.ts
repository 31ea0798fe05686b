/**
 * The fields of the vendors' tables that the gateway does not read, each with a value that asks for something.
 */
import { chat } from "../../src/contracts/chat/contract.ts"
import { generate } from "../../src/contracts/generate/contract.ts"
import { messages } from "../../src/contracts/messages/contract.ts"
import { responses } from "../../src/contracts/responses/contract.ts"
import type { Family, Fields, Row } from "../../src/contracts/shared/Family.ts"
import type { StyleName } from "./styleClients.ts"

export const families: { readonly [Style in StyleName]: Family } = {
  chat: chat.request,
  responses: responses.request,
  messages: messages.request,
  generate: generate.request
}

export interface UnreadField {
  readonly keys: ReadonlyArray<string>
  readonly row: Row
  readonly value: unknown
}

/** Values of fields that have to be of a type. */
const typed: { readonly [path: string]: unknown } = {
  max_tool_calls: 5,
  "toolConfig.functionCallingConfig.mode": "VALIDATED",
  top_logprobs: 3,
  include: ["file_search_call.results"]
}

/** What has to stand beside a field. */
const beside: { readonly [path: string]: object } = {
  "thinking.block_binding": { type: "enabled", budget_tokens: 2048 }
}

/** The rows of a table that are not supported, those of its objects included. */
export const unread = (fields: Fields, within: ReadonlyArray<string> = []): ReadonlyArray<UnreadField> =>
  [...fields].flatMap(([name, row]): ReadonlyArray<UnreadField> => {
    const keys = [...within, name]
    if (row.fate === "supported") return row.fields === undefined ? [] : unread(row.fields, keys)
    const value = [typed[keys.join(".")] ?? "said", { said: true }, true].find((value) =>
      row.isSilent?.(value) !== true
    )
    return value === undefined ? [] : [{ keys, row, value }]
  })

/** A field in its objects, with what has to stand beside it. */
export const nested = ({ keys, value }: UnreadField): object =>
  keys.reduceRight<unknown>(
    (inner, key, i) => i === 0 ? { [key]: inner } : { ...beside[keys.join(".")], [key]: inner },
    value
  ) as object

/** Each field of a style as a request, by its path. */
export const unreadFields = (style: StyleName): ReadonlyArray<readonly [path: string, fields: object]> =>
  unread(families[style].fields).map((field) => [field.keys.join("."), nested(field)])
