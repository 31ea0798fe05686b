/** Histories that servers refuse, each as the client sends it and as it leaves, with the header that names the change. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { StyleName } from "../../support/styleClients.ts"
import { picture } from "../matrix/requests.ts"
import { drivers, startAsking } from "./histories.ts"

type Fields = { readonly [field: string]: unknown }
type List = ReadonlyArray<Fields>

const user = (content: unknown) => ({ role: "user", content })
const calls = (...ids: ReadonlyArray<string>) => ({
  role: "assistant",
  content: null,
  tool_calls: ids.map((id) => ({ id, type: "function", function: { name: "f", arguments: "{}" } }))
})
const result = (id: string, content: unknown = "Rain") => ({ role: "tool", tool_call_id: id, content })
const missing = "[The result of this call is missing.]"

const uses = (...ids: ReadonlyArray<string>) => ({
  role: "assistant",
  content: ids.map((id) => ({ type: "tool_use", id, name: "f", input: {} }))
})
const told = (id: string, content = "Rain") => ({ type: "tool_result", tool_use_id: id, content })
const text = (text: string) => ({ type: "text", text })

const functionCall = (id: string) => ({ type: "function_call", call_id: id, name: "f", arguments: "{}" })
const output = (id: string, output: unknown = "Rain") => ({ type: "function_call_output", call_id: id, output })

const model = (...parts: List) => ({ role: "model", parts })
const asked = (...parts: List) => ({ role: "user", parts })
const generated = { functionCall: { name: "f", args: {} } }
const answered = (output: string) => ({ functionResponse: { name: "f", response: { output } } })

const fieldOf = { chat: "messages", responses: "input", messages: "messages", generate: "contents" } as const

type Row = readonly [
  what: string,
  style: StyleName,
  server: StyleName,
  turns: List,
  ignored: string | null,
  arrives: List
]

const rows: ReadonlyArray<Row> = [
  [
    "a call without a result",
    "chat",
    "chat",
    [user("Go"), calls("a"), user("Well?")],
    "messages[1]: call without a result",
    [
      user("Go"),
      calls("a"),
      result("a", missing),
      user("Well?")
    ]
  ],
  [
    "one of two calls without a result",
    "messages",
    "messages",
    [
      user("Go"),
      uses("a", "b"),
      user([told("b"), text("Well?")])
    ],
    "messages[1]: call without a result",
    [
      user("Go"),
      uses("a", "b"),
      user([told("b"), told("a", missing), text("Well?")])
    ]
  ],
  ["a call at the end", "responses", "responses", [user("Go"), functionCall("a")], "input[1]: call without a result", [
    user("Go"),
    functionCall("a"),
    output("a", missing)
  ]],
  [
    "a call without a result",
    "generate",
    "generate",
    [
      asked({ text: "Go" }),
      model(generated),
      asked({ text: "Well?" })
    ],
    "contents[1]: call without a result",
    [
      asked({ text: "Go" }),
      model(generated),
      asked(answered(missing), { text: "Well?" })
    ]
  ],
  [
    "a result without its call",
    "chat",
    "chat",
    [user("Go"), result("z"), user("Well?")],
    "messages[1]: result without its call",
    [
      user("Go"),
      user("[The result of a missing call]\n\nRain"),
      user("Well?")
    ]
  ],
  [
    "a result without its call",
    "responses",
    "responses",
    [user("Go"), output("z")],
    "input[1]: result without its call",
    [
      user("Go"),
      {
        type: "message",
        role: "user",
        content: [{ type: "input_text", text: "[The result of a missing call]" }, { type: "input_text", text: "Rain" }]
      }
    ]
  ],
  [
    "two results of a call",
    "chat",
    "chat",
    [user("Go"), calls("a"), result("a"), result("a", "Sun")],
    "messages[3]: second result of a call",
    [
      user("Go"),
      calls("a"),
      result("a"),
      user("[Another result of a call of f]\n\nSun")
    ]
  ],
  [
    "a developer between a call and its result",
    "responses",
    "chat",
    [
      user("Go"),
      functionCall("a"),
      { role: "developer", content: "Be brief." },
      output("a")
    ],
    "input[3]: result apart from its call",
    [user("Go"), calls("a"), result("a"), { role: "system", content: "Be brief." }]
  ],
  [
    "text before a result",
    "messages",
    "messages",
    [
      user("Go"),
      uses("a"),
      user([text("Well?"), told("a")])
    ],
    "messages[2]: result apart from its call",
    [user("Go"), uses("a"), user([told("a")]), user("Well?")]
  ],
  [
    "a picture in a result",
    "messages",
    "chat",
    [
      user("Go"),
      uses("a", "b"),
      user([
        {
          type: "tool_result",
          tool_use_id: "a",
          content: [{ type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } }]
        },
        told("b")
      ])
    ],
    null,
    [
      user("Go"),
      calls("a", "b"),
      result("a", ""),
      result("b"),
      user([{ type: "image_url", image_url: { url: picture } }])
    ]
  ],
  [
    "a history that begins with a call",
    "chat",
    "generate",
    [calls("a"), result("a")],
    "messages[0]: the user's first turn is missing",
    [
      asked({ text: "[The beginning of this conversation is missing.]" }),
      model({ functionCall: { id: "a", name: "f", args: {} } }),
      asked({ functionResponse: { id: "a", name: "f", response: { output: "Rain" } } })
    ]
  ],
  [
    "an empty turn",
    "chat",
    "messages",
    [user("Go"), { role: "assistant", content: "" }, user("Well?")],
    "messages[1]: empty turn",
    [
      user([text("Go"), text("Well?")])
    ]
  ],
  [
    "an id that two calls have",
    "chat",
    "messages",
    [
      user("Go"),
      calls("a"),
      result("a"),
      calls("a"),
      result("a", "Sun")
    ],
    null,
    [user("Go"), uses("a"), user([told("a")]), uses("a_2"), user([told("a_2", "Sun")])]
  ],
  [
    "an id that two calls have",
    "chat",
    "chat",
    [
      user("Go"),
      calls("a"),
      result("a"),
      calls("a"),
      result("a", "Sun")
    ],
    null,
    [user("Go"), calls("a"), result("a"), calls("a"), result("a", "Sun")]
  ]
]

describe("a history that its server would refuse", () => {
  it.effect.each(rows)("%s: %s before %s", ([, style, server, turns, ignored, arrives]) =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers[server])
      for (const stream of [false, true]) {
        const exchanged = yield* Effect.promise(() => ask(style, { [fieldOf[style]]: turns }, stream))
        assert.deepStrictEqual([exchanged.status, exchanged.ignored], [200, ignored], exchanged.text)
        assert.deepStrictEqual(exchanged.received.at(-1)?.[fieldOf[server]], arrives)
      }
    }))

  it.effect.each(
    [
      ["chat", "messages", { messages: [user("")] }, "messages"],
      ["chat", "generate", { messages: [user("")] }, "messages"],
      ["responses", "generate", { input: "" }, "input"],
      ["messages", "messages", { messages: [user(" ")] }, "messages"]
    ] as const
  )("is refused if nothing is left of it: %s before %s", ([style, server, fields, field]) =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers[server])
      for (const stream of [false, true]) {
        const { received, status, text } = yield* Effect.promise(() => ask(style, fields, stream))
        assert.deepStrictEqual([status, received], [400, []], text)
        assert.include(text, `${field}: has nothing for the model to read`)
      }
    }))

  it.effect("keeps outputs whose calls may be in a part that only its maker can read", () =>
    Effect.gen(function*() {
      const ask = yield* startAsking(drivers.responses)
      const input = [{ type: "compaction", id: "cmp_1", encrypted_content: "x" }, output("z"), user("Go")]
      const { ignored, received } = yield* Effect.promise(() => ask("responses", { input }))
      assert.deepStrictEqual([ignored, received[0]?.["input"]], [null, input])
    }))

  it.effect("has names that come back from a server that gets functions alone", () =>
    Effect.gen(function*() {
      const name = "9.weather:now"
      const fields = { tools: [{ type: "function", name, parameters: {} }] }
      const plain = yield* startAsking(drivers.responses, { tools: "functions" })
      const { received } = yield* Effect.promise(() => plain("responses", fields))
      const [tool] = received[0]!["tools"] as ReadonlyArray<{ readonly name: string }>
      assert.match(tool!.name, /^9_weather_now_[0-9a-f]{16}$/)
      const answer = drivers.responses.write([{ _tag: "Call", name: tool!.name, arguments: {} }], "tool_calls", false)
      const calling = yield* startAsking(drivers.responses, { tools: "functions" }, () => answer)
      const { text } = yield* Effect.promise(() => calling("responses", fields))
      assert.include(text, `"name":"${name}"`)
      assert.notInclude(text, `"name":"${tool!.name}"`)
    }))
})
