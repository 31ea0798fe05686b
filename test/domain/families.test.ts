/**
 * The tables of the vendors' fields against the request types of the vendors' SDKs: a field that an SDK can send and no row names fails.
 */
import { assert, describe, it } from "@effect/vitest"
import { contracts } from "../../src/contracts/contracts.ts"
import { ignorableFields } from "../../src/contracts/shared/chatFields.ts"
import { type Family, type Fields, type Kinds, type Row, supported } from "../../src/contracts/shared/Family.ts"
import { restOf } from "../../src/contracts/shared/restOf.ts"
import { runSync } from "../../src/domain/stream/cooperative.ts"
import { embeddingsFamily } from "../../src/styles/embeddings/Handlers.ts"
import { families } from "../../src/styles/families.ts"
import { embedFamily } from "../../src/styles/generate/readRequest.ts"
import { literalsOf, type Placed, sdkType, type Shape, variantsOf } from "../support/sdkTypes.ts"

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

/** The row of a field in the first table that has it. */
const rowIn = (tables: ReadonlyArray<Fields>, name: string): Row | undefined =>
  tables.map((table) => table.get(name)).find((row) => row !== undefined)

/** The paths of fields and kinds without a row. A supported object needs rows, unless it is opaque or sent whole. */
const missingFields = (shape: Shape, tables: ReadonlyArray<Fields>, at: string): ReadonlyArray<string> =>
  [...shape.fields].flatMap(([name, type]) => {
    const path = `${at}${name}`
    if (at === "" && notInBody.has(name)) return []
    const row = rowIn(tables, name)
    return row === undefined ? [path] : missingIn(type, row, path)
  })

const missingKinds = (shape: Shape, { by, rows }: Kinds, at: string): ReadonlyArray<string> => {
  const check = (kind: string, part: Shape): ReadonlyArray<string> => {
    const row = rows.get(kind)
    return row === undefined ? [`${at}[${kind}]`] : missingOf(part, row, `${at}[${kind}]`)
  }
  const type = shape.fields.get(typeof by === "string" ? by : "type")
  const kinds = type === undefined ? [] : literalsOf(type)
  if (typeof by !== "string") {
    if (kinds.length > 0) return kinds.flatMap((kind) => check(by({ type: kind }) ?? "", shape))
    return [...shape.fields].flatMap(([name, type]) => {
      const kind = by({ [name]: {} })
      return kind === undefined ? [] : check(kind, { name: shape.name, fields: new Map([[name, type]]) })
    })
  }
  return (kinds.length === 0 ? [""] : kinds).flatMap((kind) => check(kind, shape))
}

/** The kinds of a part of the content-generation contract. */
const partKinds: Kinds["rows"] =
  contracts.generate.request.fields.get("contents")!.items!.fields!.get("parts")!.items!.kinds!.rows

const isLeaf = ({ fate, isOpaque, whole }: Row): boolean => fate !== "supported" || isOpaque === true || whole === true

const missingOf = (shape: Shape, row: Row, at: string): ReadonlyArray<string> => {
  const { fields, items, kinds } = row
  if (isLeaf(row)) return []
  if (fields !== undefined) return missingFields(shape, [fields], `${at}.`)
  if (kinds !== undefined) return missingKinds(shape, kinds, at)
  return items === undefined ? [`${at} (${shape.name})`] : missingOf(shape, items, `${at}[]`)
}

const missingIn = (type: Placed, row: Row, at: string): ReadonlyArray<string> => {
  if (isLeaf(row)) return []
  const { elements, shapes } = variantsOf(type)
  return [
    ...shapes.flatMap((shape) => missingOf(shape, row, at)),
    ...elements.flatMap((element) => missingIn(element, row.items ?? supported, `${at}[]`))
  ]
}

describe("the tables name every field of the requests of", () => {
  type Types = ReadonlyArray<readonly [file: string, type: string, tables: ReadonlyArray<Fields>]>

  const whole: Types = [
    [chat, "ChatCompletionCreateParamsBase", [contracts.openai.request.fields]],
    ["openai/resources/embeddings.d.ts", "EmbeddingCreateParams", [embeddingsFamily.fields]],
    [responses, "ResponseCreateParamsBase", [contracts.responses.request.fields]],
    [messages, "MessageCreateParamsBase", [contracts.messages.request.fields]],
    [betaMessages, "MessageCreateParamsBase", [contracts.messages.request.fields]]
  ]

  it.each(whole)("%s: %s, with all that they contain", (file, type, tables) => {
    const shape = sdkType(file, type)
    assert.isAbove(shape.fields.size, 0)
    assert.deepStrictEqual([...new Set(missingFields(shape, tables, ""))], [])
  })

  const itemsOf = (name: string): Row => contracts.generate.request.fields.get(name)!.items!

  // The types of the SDK's parameters are those of its functions, not of the body.
  const elements: ReadonlyArray<readonly [type: string, row: Row]> = [
    ["Content", itemsOf("contents")],
    ["Tool", itemsOf("tools")],
    [
      "FunctionDeclaration",
      itemsOf("tools").kinds!.rows.get("functionDeclarations")!.fields!.get("functionDeclarations")!.items!
    ],
    ["FunctionCall", partKinds.get("functionCall")!.fields!.get("functionCall")!],
    ["FunctionResponse", { ...partKinds.get("functionResponse")!.fields!.get("functionResponse")!, whole: false }],
    ["FileData", partKinds.get("fileData")!.fields!.get("fileData")!],
    ["Blob_2", partKinds.get("inlineData")!.fields!.get("inlineData")!]
  ]

  it.each(elements)("%s of the content-generation SDK, with all that it contains", (type, row) => {
    const shape = sdkType(genai, type)
    assert.isAbove(shape.fields.size, 0)
    assert.deepStrictEqual([...new Set(missingOf(shape, row, type))], [])
  })

  it.each([...partKinds.values()].filter(({ fields }) => fields !== undefined))(
    "all that describes a part, of each kind",
    ({ fields }) => {
      const { fields: all } = sdkType(genai, "Part")
      const described = [...all.keys()].filter((name) => !partKinds.has(name))
      assert.deepStrictEqual(described.filter((name) => !fields!.has(name)), [])
    }
  )

  const flat: Types = [
    // The SDK spreads one object over the body and its `generationConfig`.
    [genai, "GenerateContentConfig", [
      contracts.generate.request.fields,
      inner(contracts.generate.request, "generationConfig")
    ]],
    [genai, "GenerationConfig", [inner(contracts.generate.request, "generationConfig")]],
    [genai, "ToolConfig", [inner(contracts.generate.request, "toolConfig")]],
    [genai, "EmbedContentConfig", [embedFamily.fields]]
  ]

  it.each(flat)("%s: %s", (file, type, tables) => {
    const names = [...sdkType(file, type).fields.keys()]
    assert.isAbove(names.length, 0)
    assert.deepStrictEqual(
      names.filter((name) => !notInBody.has(name) && rowIn(tables, name) === undefined),
      []
    )
  })
})

describe("the table of a family", () => {
  it.each(families)("gives a reason for whatever has no effect ($name)", ({ fields }) => {
    const withoutIn = (name: string, { fate, fields: inner, items, kinds, why }: Row): ReadonlyArray<string> => [
      ...((fate === "reported" || fate === "ignorable" || fate === "refused") && why === undefined ? [name] : []),
      ...(inner === undefined ? [] : without(inner)),
      ...(kinds === undefined ? [] : without(kinds.rows)),
      ...(items === undefined ? [] : withoutIn(`${name}[]`, items))
    ]
    const without = (table: Fields): ReadonlyArray<string> => [...table].flatMap(([name, row]) => withoutIn(name, row))
    assert.deepStrictEqual(without(fields), [])
  })

  it.each(families)("says of each field what the reader of bodies does with it ($name)", (family) => {
    const rest = (body: object) => runSync(restOf(family, body))
    for (const [name, row] of family.fields) {
      // Another name than that of a part or a tool is a kind of its own.
      if (family === contracts.generate.request && name === "systemInstruction") continue
      const value = row.items === undefined ? { said: true } : "said"
      const { ignored, bodyVendorFields, refused, serverFields } = rest({ [name]: value })
      const unsent = bodyVendorFields?.unsent()
      const isSilent = row.isSilent?.(value) === true
      const isRefused = !isSilent && (row.fate === "refused" || row.required === true && row.fate === "reported")
      assert.deepStrictEqual(
        [...ignored, ...unsent?.paths ?? []],
        row.fields !== undefined
          ? [`${name}.said`]
          : row.fate === "reported" && !isSilent && !isRefused
          ? [name]
          : [],
        name
      )
      assert.strictEqual((refused ?? unsent?.refused)?.param, isRefused ? name : undefined, name)
      assert.deepStrictEqual(serverFields, row.fate === "passed" ? { [row.as ?? name]: value } : undefined, name)
    }
  })

  it("passes every field that it names as ignorable", () => {
    for (const name of ignorableFields.keys()) {
      assert.strictEqual(contracts.openai.request.fields.get(name)?.fate, "passed", name)
    }
  })
})
