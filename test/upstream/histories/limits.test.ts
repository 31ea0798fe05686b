/** Names, ids, counts and forms that a client's contract has and its server's does not: each leaves within the server's limits and comes back as it was. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { startStand } from "../../golden/stand.ts"
import { text } from "../../styles/replies.ts"
import { businessKey } from "../../support/gateway.ts"
import { styleNames } from "../../support/styleClients.ts"
import { pdf } from "../matrix/requests.ts"
import { drivers, startAsking } from "./histories.ts"

type Fields = { readonly [field: string]: unknown }

const at = (value: unknown, ...path: ReadonlyArray<string | number>): unknown =>
  path.reduce<unknown>((inner, key) => (inner as Fields | undefined)?.[key], value)

const schema = { type: "object", properties: {} }

/** Declared tools, a choice of the second one and a call of it, in each style. */
const requests = {
  chat: (names: ReadonlyArray<string>, id: string) => ({
    tools: names.map((name) => ({ type: "function", function: { name, parameters: schema } })),
    tool_choice: { type: "function", function: { name: names[1] } },
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: null,
        tool_calls: [{ id, type: "function", function: { name: names[1], arguments: "{}" } }]
      },
      { role: "tool", tool_call_id: id, content: "Rain" }
    ]
  }),
  responses: (names: ReadonlyArray<string>, id: string) => ({
    tools: names.map((name) => ({ type: "function", name, parameters: schema })),
    tool_choice: { type: "function", name: names[1] },
    input: [
      { role: "user", content: "Go" },
      { type: "function_call", call_id: id, name: names[1], arguments: "{}" },
      { type: "function_call_output", call_id: id, output: "Rain" }
    ]
  }),
  messages: (names: ReadonlyArray<string>, id: string) => ({
    tools: names.map((name) => ({ name, input_schema: schema })),
    tool_choice: { type: "tool", name: names[1] },
    messages: [
      { role: "user", content: "Go" },
      { role: "assistant", content: [{ type: "tool_use", id, name: names[1], input: {} }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: id, content: "Rain" }] }
    ]
  }),
  generate: (names: ReadonlyArray<string>, id: string) => ({
    tools: [{ functionDeclarations: names.map((name) => ({ name, parametersJsonSchema: schema })) }],
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: [names[1]] } },
    contents: [
      { role: "user", parts: [{ text: "Go" }] },
      { role: "model", parts: [{ functionCall: { id, name: names[1], args: {} } }] },
      { role: "user", parts: [{ functionResponse: { id, name: names[1], response: { output: "Rain" } } }] }
    ]
  })
}

/** Where a server's request has the names of tools, the forced one and the call's, and the ids of the call and the result. */
const places = {
  chat: (body: Fields) => ({
    declared: (body["tools"] as ReadonlyArray<Fields>).map((tool) => at(tool, "function", "name")),
    forced: at(body, "tool_choice", "function", "name"),
    called: at(body, "messages", 1, "tool_calls", 0, "function", "name"),
    ids: [at(body, "messages", 1, "tool_calls", 0, "id"), at(body, "messages", 2, "tool_call_id")]
  }),
  responses: (body: Fields) => ({
    declared: (body["tools"] as ReadonlyArray<Fields>).map(({ name }) => name),
    forced: at(body, "tool_choice", "name"),
    called: at(body, "input", 1, "name"),
    ids: [at(body, "input", 1, "call_id"), at(body, "input", 2, "call_id")]
  }),
  messages: (body: Fields) => ({
    declared: (body["tools"] as ReadonlyArray<Fields>).map(({ name }) => name),
    forced: at(body, "tool_choice", "name"),
    called: at(body, "messages", 1, "content", 0, "name"),
    ids: [at(body, "messages", 1, "content", 0, "id"), at(body, "messages", 2, "content", 0, "tool_use_id")]
  }),
  generate: (body: Fields) => ({
    declared: (at(body, "tools", 0, "functionDeclarations") as ReadonlyArray<Fields>).map(({ name }) => name),
    forced: at(body, "toolConfig", "functionCallingConfig", "allowedFunctionNames", 0),
    called: at(body, "contents", 1, "parts", 0, "functionCall", "name"),
    ids: [
      at(body, "contents", 1, "parts", 0, "functionCall", "id"),
      at(body, "contents", 2, "parts", 0, "functionResponse", "id")
    ]
  })
}

const accepted = {
  chat: { name: /^[a-zA-Z0-9_-]{1,64}$/, id: /^.{1,40}$/ },
  responses: { name: /^[a-zA-Z0-9_-]{1,64}$/, id: /^.{1,64}$/ },
  messages: { name: /^[a-zA-Z0-9_-]{1,128}$/, id: /^[a-zA-Z0-9_-]{1,64}$/ },
  generate: { name: /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$/, id: /./ }
}

const long = "mcp__a_server_with_a_long_name__"
const names = [`${long}${"a".repeat(100)}_one`, `${long}${"a".repeat(100)}_two`, "9.weather:now", "9_weather_now", "f"]

/** Tools of these two contracts go to a server of the same one as their caller has declared them. */
const isWritten = (style: string, server: string) => style === server && (style === "responses" || style === "generate")

const pairs = styleNames.flatMap((server) =>
  styleNames.flatMap((style) => isWritten(style, server) ? [] : [{ style, server }])
)

describe.each(pairs)("tools of $style before a server of $server", ({ server, style }) => {
  const ask = (name: string) =>
    startAsking(
      drivers[server],
      {},
      (stream) => drivers[server].write([{ _tag: "Call", name, arguments: {} }], "tool_calls", stream)
    )

  it.effect("have names and ids of calls that the server accepts, the same in every place, and distinct", () =>
    Effect.gen(function*() {
      const id = "call.".padEnd(86, "x")
      const request = yield* ask("f")
      const { received, text } = yield* Effect.promise(() => request(style, requests[style](names, id)))
      assert.isNotEmpty(received, text)
      const { called, declared, forced, ids: [call, result] } = places[server](received[0]!)
      const isPart = style === "generate"
      const sent = new Set(declared)
      assert.strictEqual(sent.size, isPart ? 1 : names.length)
      for (const name of declared) assert.match(String(name), accepted[server].name)
      assert.deepStrictEqual([forced, called], isPart ? [declared[0], declared[0]] : [declared[1], declared[1]])
      assert.match(String(call), accepted[server].id)
      assert.strictEqual(result, call)
      if (!isPart) assert.strictEqual(declared[4], "f")
    }))

  it.effect.each([["whole", false], ["streamed", true]] as const)(
    "come back by the client's own names, %s",
    ([, stream]) =>
      Effect.gen(function*() {
        const plain = yield* ask("f")
        const { received } = yield* Effect.promise(() => plain(style, requests[style](names, "c1")))
        const sent = String(places[server](received[0]!).forced)
        const request = yield* ask(sent)
        const { status, text } = yield* Effect.promise(() => request(style, requests[style](names, "c1"), stream))
        assert.strictEqual(status, 200, text)
        assert.include(text, names[1]!)
        if (sent !== names[1]) assert.notInclude(text, sent)
      })
  )
})

type Row = readonly [
  what: string,
  style: keyof typeof requests,
  server: keyof typeof requests,
  fields: Fields,
  ignored: string | null,
  path: ReadonlyArray<string | number>,
  arrives: unknown
]

const hi = [{ role: "user", content: "Hi" }]
const bare = { type: "object" }
const seven = ["1", "2", "3", "4", "5", "6", "7"]
const file = { type: "file", file: { file_data: pdf } }

const rows: ReadonlyArray<Row> = [
  [
    "a document without a name gets one",
    "messages",
    "chat",
    {
      messages: [{
        role: "user",
        content: [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: "aGk=" } }]
      }]
    },
    null,
    ["messages", 0, "content", 0, "file", "filename"],
    "file.pdf"
  ],
  ["a document without a name gets one", "chat", "responses", { messages: [{ role: "user", content: [file] }] }, null, [
    "input",
    0,
    "content",
    0,
    "filename"
  ], "file.pdf"],
  [
    "a name of a document stays",
    "chat",
    "responses",
    {
      messages: [{ role: "user", content: [{ type: "file", file: { file_data: pdf, filename: "a.pdf" } }] }]
    },
    null,
    ["input", 0, "content", 0, "filename"],
    "a.pdf"
  ],
  [
    "of temperature and top_p the first leaves",
    "chat",
    "messages",
    { messages: hi, temperature: 0.2, top_p: 0.5 },
    "top_p",
    [
      "top_p"
    ],
    undefined
  ],
  [
    "temperature and top_p of a client of the contract both leave",
    "messages",
    "messages",
    {
      temperature: 0.2,
      top_p: 0.5
    },
    null,
    ["top_p"],
    0.5
  ],
  ["a schema gets its list of properties", "messages", "chat", { tools: [{ name: "f", input_schema: bare }] }, null, [
    "tools",
    0,
    "function",
    "parameters"
  ], schema],
  [
    "a schema gets its list of properties",
    "chat",
    "responses",
    {
      tools: [{ type: "function", function: { name: "f", parameters: {} } }]
    },
    null,
    ["tools", 0, "parameters"],
    schema
  ],
  [
    "a list gets a schema of its items, in each place",
    "messages",
    "chat",
    {
      tools: [{
        name: "f",
        input_schema: {
          type: "object",
          properties: {
            a: { type: "array" },
            b: { anyOf: [{ type: "array" }, { type: "array", items: { type: "string" } }] }
          },
          $defs: { items: { type: "object", properties: { items: { type: "array", prefixItems: [{}] } } } }
        }
      }]
    },
    null,
    ["tools", 0, "function", "parameters"],
    {
      type: "object",
      properties: {
        a: { type: "array", items: {} },
        b: { anyOf: [{ type: "array", items: {} }, { type: "array", items: { type: "string" } }] }
      },
      $defs: { items: { type: "object", properties: { items: { type: "array", prefixItems: [{}] } } } }
    }
  ],
  [
    "a turn to go on with leaves without blanks at its end",
    "chat",
    "messages",
    { messages: [{ role: "user", content: "Go" }, { role: "assistant", content: "Once upon " }] },
    null,
    ["messages", 1, "content"],
    "Once upon"
  ],
  ["four stop sequences leave", "chat", "chat", { stop: seven }, null, ["stop"], seven.slice(0, 4)],
  [
    "five stop sequences leave",
    "chat",
    "generate",
    { stop: seven },
    null,
    ["generationConfig", "stopSequences"],
    seven.slice(
      0,
      5
    )
  ],
  [
    "half of a surrogate pair is replaced",
    "chat",
    "chat",
    { messages: [{ role: "user", content: "a\ud83d b 😀 \\ud83d" }] },
    null,
    [
      "messages",
      0,
      "content"
    ],
    "a\ufffd b 😀 \\ud83d"
  ]
]

const picture = (type: string, data: string) => ({
  chat: {
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: `data:${type};base64,${data}` } }] }]
  },
  responses: {
    input: [{ role: "user", content: [{ type: "input_image", image_url: `data:${type};base64,${data}` }] }]
  },
  messages: {
    messages: [{ role: "user", content: [{ type: "image", source: { type: "base64", media_type: type, data } }] }]
  },
  generate: { contents: [{ role: "user", parts: [{ inlineData: { mimeType: type, data } }] }] }
})
const fieldOfTurn = { chat: "messages[0]", responses: "input[0]", generate: "contents[0]" } as const

describe("a picture before a messages server", () => {
  it.effect.each(styleNames.flatMap((style) => [
    [style, "another type", "image/png", "/9j/4AAQSkZJRgABAQ==", "image/jpeg"] as const,
    [style, "a name that is no type", "image/jpg", "AAAA", "image/jpeg"] as const,
    [style, "its type", "image/webp", "UklGRgA=", "image/webp"] as const
  ]))("has the type of its bytes: %s, called by %s", ([style, , said, data, type]) =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.messages)
      const { received, status, text } = yield* Effect.promise(() => ask(style, picture(said, data)[style]))
      assert.strictEqual(status, 200, text)
      assert.deepStrictEqual(at(received[0], "messages", 0, "content", 0, "source"), {
        type: "base64",
        media_type: type,
        data
      })
    }))

  it.effect.each(["chat", "responses", "generate"] as const)(
    "of a type that the contract does not have is refused by its field: %s",
    (style) =>
      Effect.gen(function*() {
        const ask = yield* startAsking(drivers.messages)
        const { received, status, text } = yield* Effect.promise(() => ask(style, picture("image/bmp", "Qk0=")[style]))
        assert.strictEqual(status, 400)
        assert.include(text, `${fieldOfTurn[style]}: a picture is image/jpeg, image/png, image/gif, image/webp`)
        assert.lengthOf(received, 0)
      })
  )

  it.effect("reaches the vendor as a client of its contract calls it, where the bytes say nothing", () =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.messages)
      const { received } = yield* Effect.promise(() => ask("messages", picture("image/bmp", "Qk0=").messages))
      assert.strictEqual(at(received[0], "messages", 0, "content", 0, "source", "media_type"), "image/bmp")
    }))
})

describe("what a server's contract limits", () => {
  it.effect.each(rows)(
    "%s: %s before %s",
    ([, style, server, fields, ignored, path, arrives]) =>
      Effect.gen(function*() {
        const ask = yield* startAsking(drivers[server])
        for (const stream of [false, true]) {
          const exchanged = yield* Effect.promise(() => ask(style, fields, stream))
          assert.deepStrictEqual([exchanged.status, exchanged.ignored], [200, ignored], exchanged.text)
          assert.deepStrictEqual(at(exchanged.received[0], ...path), arrives)
        }
      })
  )

  it.effect("splits texts for embeddings, and joins their vectors in order", () =>
    Effect.gen(function*() {
      const stand = yield* startStand({
        embeddings: { provider: "upstream" },
        upstream: { driver: "generate", models: drivers.generate.models }
      })
      const sizes: Array<number> = []
      stand.answer(({ body }) => {
        const { requests } = JSON.parse(body) as { readonly requests: ReadonlyArray<Fields> }
        const embeddings = requests.map((request) => ({ values: [Number(at(request, "content", "parts", 0, "text"))] }))
        sizes.push(requests.length)
        return {
          headers: { "content-type": "application/json" },
          pieces: [JSON.stringify({ embeddings, usageMetadata: { promptTokenCount: requests.length } })]
        }
      })
      const input = Array.from({ length: 205 }, (_, i) => String(i))
      const response = yield* Effect.promise(() =>
        stand.fetch("http://gateway.test/v1/embeddings", {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}`, "content-type": "application/json" },
          body: JSON.stringify({ model: "upstream-chat", input })
        })
      )
      const reply = (yield* Effect.promise(() => response.json())) as { readonly data: ReadonlyArray<Fields> }
      assert.deepStrictEqual(sizes, [100, 100, 5])
      assert.deepStrictEqual(reply.data.map(({ embedding }) => embedding), input.map((text) => [Number(text)]))
      assert.strictEqual(at(reply, "usage", "prompt_tokens"), 205)
    }))

  it.effect("ends a reply at a stop sequence that the server did not get", () =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.chat, {}, () => drivers.chat.write([text("a7b")], "stop", false))
      const { text: body } = yield* Effect.promise(() => ask("chat", { stop: seven }))
      assert.deepStrictEqual(at(JSON.parse(body), "choices", 0, "message", "content"), "a")
    }))

  const two = (name: string): Readonly<Record<keyof typeof requests, readonly [fields: Fields, field: string]>> => ({
    chat: [{ tools: [1, 2].map(() => ({ type: "function", function: { name } })) }, "tools[1].function.name"],
    responses: [{ tools: [1, 2].map(() => ({ type: "function", name, parameters: schema })) }, "tools[1].name"],
    messages: [{ tools: [1, 2].map(() => ({ name, input_schema: schema })) }, "tools[1].name"],
    generate: [{ tools: [{ functionDeclarations: [{ name }, { name }] }] }, "tools[0].functionDeclarations[1].name"]
  })

  it.effect.each(styleNames)("refuses two tools of one name: %s", (style) =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers[style])
      const [fields, field] = two("f")[style]
      const { received, status, text } = yield* Effect.promise(() => ask(style, fields))
      assert.deepStrictEqual([status, received], [400, []])
      assert.include(text, `${field}: another tool has the same name`)
    }))
})
