/**
 * The tables of the vendors' fields against the request types of the vendors' SDKs: a field that an SDK can send and no row names fails.
 */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"
import { parseSync, Visitor } from "rolldown/utils"
import { carriedHints, families } from "../../src/domain/families/families.ts"
import type { Family, Fields } from "../../src/domain/families/Family.ts"
import { embedFamily, generateFamily } from "../../src/domain/families/generate.ts"
import { messagesFamily } from "../../src/domain/families/messages.ts"
import { chatFamily, embeddingsFamily } from "../../src/domain/families/openai.ts"
import { responsesFamily } from "../../src/domain/families/responses.ts"
import { restOf } from "../../src/domain/families/restOf.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"

const modules = path.join(import.meta.dirname, "../../node_modules")

/** The fields of the interfaces of a declaration file, by the interface's name. */
const interfacesOf = (file: string): ReadonlyMap<string, ReadonlyArray<string>> => {
  const text = readFileSync(path.join(modules, file), "utf8")
  const { errors, program } = parseSync(file, text)
  assert.deepStrictEqual(errors, [])
  const found = new Map<string, Array<string>>()
  new Visitor({
    TSInterfaceDeclaration: ({ body, id }) => {
      const fields = found.get(id.name) ?? []
      for (const member of body.body) {
        if (member.type !== "TSPropertySignature") continue
        if (member.key.type === "Identifier") fields.push(member.key.name)
        else if (member.key.type === "Literal") fields.push(String(member.key.value))
      }
      found.set(id.name, fields)
    }
  }).visit(program)
  return found
}

const chat = "openai/resources/chat/completions/completions.d.ts"
const responses = "openai/resources/responses/responses.d.ts"
const messages = "@anthropic-ai/sdk/resources/messages/messages.d.ts"
const betaMessages = "@anthropic-ai/sdk/resources/beta/messages/messages.d.ts"
const genai = "@google/genai/dist/genai.d.ts"

/** What SDKs keep for themselves or send as a header. */
const notInBody: ReadonlySet<string> = new Set([
  "httpOptions",
  "abortSignal",
  "automaticFunctionCalling",
  "automaticContinuation",
  "betas"
])

const inner = ({ fields }: Family, name: string): Fields => {
  const found = fields.get(name)?.fields
  assert.isDefined(found, name)
  return found
}

describe("the tables name every field of the requests of", () => {
  const types: ReadonlyArray<readonly [file: string, type: string, tables: ReadonlyArray<Fields>]> = [
    [chat, "ChatCompletionCreateParamsBase", [chatFamily.fields]],
    [chat, "ChatCompletionStreamOptions", [inner(chatFamily, "stream_options")]],
    ["openai/resources/embeddings.d.ts", "EmbeddingCreateParams", [embeddingsFamily.fields]],
    [responses, "ResponseCreateParamsBase", [responsesFamily.fields]],
    [responses, "ResponseTextConfig", [inner(responsesFamily, "text")]],
    ["openai/resources/shared.d.ts", "Reasoning", [inner(responsesFamily, "reasoning")]],
    [messages, "MessageCreateParamsBase", [messagesFamily.fields]],
    [messages, "OutputConfig", [inner(messagesFamily, "output_config")]],
    [betaMessages, "MessageCreateParamsBase", [messagesFamily.fields]],
    [betaMessages, "BetaOutputConfig", [inner(messagesFamily, "output_config")]],
    // The SDK spreads one object over the body and its `generationConfig`.
    [genai, "GenerateContentConfig", [generateFamily.fields, inner(generateFamily, "generationConfig")]],
    [genai, "GenerationConfig", [inner(generateFamily, "generationConfig")]],
    [genai, "ToolConfig", [inner(generateFamily, "toolConfig")]],
    [genai, "EmbedContentConfig", [embedFamily.fields]]
  ]
  const read = new Map([...new Set(types.map(([file]) => file))].map((file) => [file, interfacesOf(file)]))

  it.each(types)("%s: %s", (file, type, tables) => {
    const fields = read.get(file)?.get(type) ?? []
    assert.isAbove(fields.length, 0)
    assert.deepStrictEqual(
      fields.filter((name) => !notInBody.has(name) && !tables.some((table) => table.has(name))),
      []
    )
  })
})

describe("the table of a family", () => {
  it.each(families)("gives a reason for whatever has no effect ($name)", ({ fields }) => {
    const without = (table: Fields): ReadonlyArray<string> =>
      [...table].flatMap(([name, { fate, fields: inner, why }]) => [
        ...((fate === "told" || fate === "hint" || fate === "refused") && why === undefined ? [name] : []),
        ...(inner === undefined ? [] : without(inner))
      ])
    assert.deepStrictEqual(without(fields), [])
  })

  it.each(families)("says of each field what the reader of bodies does with it ($name)", (family) => {
    const rest = (body: object) => runSync(restOf(family, body))
    for (const [name, row] of family.fields) {
      // A value in the place of a content is a part of its own kind.
      if (family === generateFamily && ["contents", "systemInstruction", "tools"].includes(name)) continue
      const value = { said: true }
      const { ignored, natives, refused, serverFields } = rest({ [name]: value })
      const unsent = natives?.unsent()
      const isSilent = row.isSilent?.(value) === true
      const isRefused = !isSilent && (row.fate === "refused" || row.required === true && row.fate === "told")
      assert.deepStrictEqual(
        [...ignored, ...unsent?.paths ?? []],
        row.fields !== undefined
          ? [`${name}.said`]
          : row.fate === "told" && !isSilent && !isRefused
          ? [name]
          : [],
        name
      )
      assert.strictEqual((refused ?? unsent?.refused)?.param, isRefused ? name : undefined, name)
      assert.deepStrictEqual(serverFields, row.fate === "carried" ? { [row.as ?? name]: value } : undefined, name)
    }
  })

  it("has the carried hints", () => {
    for (const name of carriedHints.keys()) assert.strictEqual(chatFamily.fields.get(name)?.fate, "carried", name)
  })
})
