/** Requests with a strict schema, over sockets: the target that they go to, the schema that its server gets, and what the reply says of it. */
import { afterAll, assert, beforeAll, beforeEach, describe, it } from "@effect/vitest"
import { admin } from "../gateway/support.ts"
import { type RunningGateway, startGateway } from "../support/gateway.ts"
import * as Generate from "../support/generateServer.ts"
import * as Messages from "../support/messagesServer.ts"
import { streamed } from "../support/openaiServer.ts"
import * as Responses from "../support/responsesServer.ts"
import { pageText } from "../support/snippets.ts"
import { untilHolds } from "../support/until.ts"
import {
  type Behaviour,
  type DriverName,
  drivers,
  type Farm,
  held,
  json,
  nameOf,
  said,
  send,
  startFarm,
  type Told,
  type Way,
  wayName,
  ways
} from "./support.ts"

const closed = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false
}
const open = { type: "object", properties: { city: { type: "string" } } }

/** The fields of a strict schema in each style, and of one that promises nothing. */
const fields: Readonly<Record<Way["style"], (schema: object, strict?: boolean) => object>> = {
  chat: (schema, strict = true) => ({
    response_format: { type: "json_schema", json_schema: { name: "place", schema, strict } }
  }),
  responses: (schema, strict = true) => ({ text: { format: { type: "json_schema", name: "place", schema, strict } } }),
  messages: (schema) => ({ max_tokens: 99, output_config: { format: { type: "json_schema", schema } } }),
  generate: (schema) => ({
    generationConfig: { responseMimeType: "application/json", responseJsonSchema: schema }
  })
}

/** What each style calls the schema. */
const names: Readonly<Record<Way["style"], string>> = {
  chat: "response_format",
  responses: "text.format",
  messages: "output_config.format",
  generate: "generationConfig.responseJsonSchema"
}

/** The servers: their facts, and the fields of their upstreams. */
const servers: Readonly<
  Record<string, { readonly schemas?: string; readonly tools?: boolean; readonly more?: object }>
> = {
  binds: { schemas: "binding", more: { account_max_inflight: 1 } },
  binds2: { schemas: "binding" },
  advises: { schemas: "advisory" },
  reads: { schemas: "none", tools: false },
  prompts: { schemas: "none", more: { tools: "prompt" } },
  unknown: {},
  fails: { schemas: "binding" },
  "fails-too": {},
  ...Object.fromEntries(drivers.flatMap((driver) => [
    [`binds-${driver}`, { schemas: "binding", more: { driver } }],
    [`tool-${driver}`, { schemas: "none", more: { driver } }]
  ]))
}

let farm: Farm
let gateway: RunningGateway
beforeAll(async () => {
  farm = await startFarm()
  gateway = await startGateway({
    upstreams: Object.fromEntries(
      Object.entries(servers).map(([name, { more, ...facts }]) => [name, {
        ...farm.upstream(name, { ...more }),
        models: { m: { model: "m", ...facts } }
      }])
    ),
    accounts: Object.keys(servers).map((upstream) => ({ upstream, token: `key-of-${upstream}` })),
    routes: {
      mixed: ["unknown/m", "advises/m", "binds/m"],
      even: { targets: ["advises/m", "unknown/m", "binds2/m"], spread: "even" },
      weighted: {
        targets: [{ target: "advises/m", weight: 100 }, { target: "binds/m", weight: 1 }, "binds2/m"],
        spread: "weighted"
      },
      sticky: { targets: ["advises/m", "binds2/m"], sticky: "target" },
      failing: ["unknown/m", "advises/m", "fails/m"],
      failingOn: ["fails-too/m", "advises/m", "fails/m"],
      keepsFailing: { targets: ["advises/m", "fails/m", "unknown/m"], schemas: "required" },
      nowhere: ["unknown/m", "advises/m"],
      keeps: { targets: ["advises/m", "binds/m", "unknown/m"], schemas: "required" },
      keepsOff: { targets: ["advises/m", "unknown/m"], schemas: "required" },
      keepsAlone: { targets: ["unknown/m"], schemas: "required" }
    },
    runtime: { sticky: false }
  })
})
afterAll(async () => {
  await gateway.stop()
  await farm.stop()
})
beforeEach(() => {
  for (const name of Object.keys(servers)) {
    farm.answer(name, (request) => name.startsWith("fails") ? json(503, {}) : said(name, request))
  }
})

const ask = (way: Way, model: string, schema: object = closed, strict?: boolean) =>
  send(gateway, way, model, { body: { ...fields[way.style](schema, strict) } })

const plain: Way = { style: "chat", stream: false }

const recordOf = (told: Told) =>
  admin(gateway.url, "GET", `/admin/requests/${told.headers.get("x-request-id")}`) as unknown as Promise<{
    readonly target: string
    readonly ignored: ReadonlyArray<string>
    readonly excluded: ReadonlyArray<{ readonly target: string; readonly reason: string }>
  }>

/** The only request that an upstream got. */
const bodyAt = (name: string): Record<string, unknown> => {
  const seen = farm.seen(name)
  assert.strictEqual(seen.length, 1, name)
  return seen[0]!.body as unknown as Record<string, unknown>
}

describe.each(ways.map((way) => ({ ...way, name: wayName(way) })))("a strict schema, $name,", (way) => {
  const field = names[way.style]

  it("goes to the first target that binds it, and nothing is said of it", async () => {
    const told = await ask(way, "mixed")
    assert.strictEqual(told.text, "binds", told.body)
    assert.isNull(told.headers.get("x-gateway-ignored"))
    const record = await recordOf(told)
    assert.deepStrictEqual([record.target, record.ignored, record.excluded], ["binds/m", [], []])
    const { response_format } = bodyAt("binds")
    assert.deepInclude((response_format as Record<string, object>)["json_schema"], { schema: closed, strict: true })
  })

  it("goes to another one after a failure, and header and record say that it is not bound", async () => {
    const told = await ask(way, "failing")
    assert.strictEqual(told.text, "unknown", told.body)
    const second = await ask(way, "failingOn")
    assert.strictEqual(second.text, "advises", second.body)
    if (!way.stream) assert.strictEqual(second.headers.get("x-gateway-ignored"), field)
    assert.deepStrictEqual((await recordOf(second)).ignored, [field])
    assert.deepStrictEqual((await recordOf(told)).ignored, [])
  })

  it("goes to a target that is said not to bind it where no other one does, and both say so", async () => {
    const told = await ask(way, "advises/m")
    assert.strictEqual(told.text, "advises", told.body)
    assert.strictEqual(told.headers.get("x-gateway-ignored"), field)
    assert.deepStrictEqual((await recordOf(told)).ignored, [field])
  })

  it("goes where the order says while no target is known to bind it", async () => {
    const told = await ask(way, "nowhere")
    assert.strictEqual(told.text, "unknown", told.body)
    assert.isNull(told.headers.get("x-gateway-ignored"))
  })

  it("stays at the targets that bind it where the route requires that", async () => {
    const told = await ask(way, "keeps")
    assert.strictEqual(told.text, "binds", told.body)
    assert.deepStrictEqual((await recordOf(told)).excluded, [
      { target: "advises/m", reason: "not_binding" },
      { target: "unknown/m", reason: "not_binding" }
    ])
    assert.strictEqual((await ask(way, "keepsFailing")).status, 503)
    assert.deepStrictEqual([farm.seen("advises").length, farm.seen("unknown").length], [0, 0])
  })

  it.each(["keepsOff", "keepsAlone"])(
    "is refused by the name of its field where no target binds it: %s",
    async (route) => {
      const told = await ask(way, route)
      assert.strictEqual(told.status, 400, told.body)
      assert.isString((JSON.parse(told.body) as { error: { message: string } }).error.message)
      assert.include(told.body, `${field}: the route`)
      assert.include(told.body, route === "keepsOff" ? "bind schemas: advises/m, unknown/m" : "bind schemas: unknown/m")
      assert.deepStrictEqual([farm.seen("advises").length, farm.seen("unknown").length], [0, 0])
    }
  )

  it.each(drivers.filter((driver) => driver !== way.style || driver !== "responses"))(
    "becomes a tool that the model has to call where the server reads no schema: %s",
    async (driver) => {
      const name = `tool-${driver}`
      const call: Readonly<Record<DriverName, Behaviour>> = {
        openai: () =>
          streamed(
            { tool_calls: [{ index: 0, id: "c", function: { name: "reply", arguments: `{"city":` } }] },
            { tool_calls: [{ index: 0, function: { arguments: `"Rome"}` } }] }
          ),
        responses: () => Responses.streamed(Responses.responseOf([Responses.callItem("reply", { city: "Rome" })])),
        messages: () =>
          Messages.streamedMessage([{ type: "tool_use", id: "c", name: "reply", input: { city: "Rome" } }], {
            stop: { stop_reason: "tool_use" }
          }),
        generate: () =>
          Generate.streamed(
            Generate.chunk([{ functionCall: { name: "reply", args: { city: "Rome" } } }], { finishReason: "STOP" })
          )
      }
      farm.answer(name, call[driver])
      const told = await ask(way, `${name}/m`)
      assert.strictEqual(told.status, 200, told.body)
      assert.deepStrictEqual(JSON.parse(told.text), { city: "Rome" }, told.body)
      assert.strictEqual(told.headers.get("x-gateway-ignored"), field)
      assert.deepStrictEqual((await recordOf(told)).ignored, [field])
      const sent = JSON.stringify(bodyAt(name))
      assert.include(sent, "Gives the reply itself")
      assert.notMatch(sent, /json_schema"|responseJsonSchema/)
      assert.match(sent, /"(?:tool_choice|toolConfig)":/)
      // The reply ends as one without calls.
      assert.notMatch(told.body, /"(?:tool_calls|tool_use|functionCall|function_call)"/)
    }
  )
})

describe("a request", () => {
  it("without a strict schema goes where the order says, and nothing is said of its schema", async () => {
    for (const way of [plain, { ...plain, style: "responses" }] as const) {
      const told = await ask(way, "mixed", closed, false)
      assert.strictEqual(told.text, "unknown")
      const alone = await ask(way, "advises/m", closed, false)
      assert.isNull(alone.headers.get("x-gateway-ignored"))
      const kept = await ask(way, "keeps", closed, false)
      assert.strictEqual(kept.text, "advises")
    }
    assert.strictEqual((await send(gateway, plain, "mixed")).text, "unknown")
    assert.strictEqual((await send(gateway, plain, "keepsOff")).text, "advises")
  })

  it("goes to a target that binds its schema whatever the spread of the route", async () => {
    for (let i = 0; i < 4; i++) assert.strictEqual((await ask(plain, "even")).text, "binds2")
    const served = new Set<string>()
    for (let i = 0; i < 4; i++) served.add((await ask(plain, "weighted")).text)
    assert.deepStrictEqual([...served].toSorted(), ["binds", "binds2"])
    assert.strictEqual((await send(gateway, plain, "weighted")).text, "advises")
  })

  it("goes to a target that binds its schema though its conversation was answered by another one", async () => {
    const messages = [{ role: "user", content: "Hi" }]
    assert.strictEqual((await send(gateway, plain, "sticky", { body: { messages } })).text, "advises")
    const next = [...messages, { role: "assistant", content: "advises" }, { role: "user", content: "Where?" }]
    const told = await send(gateway, plain, "sticky", { body: { messages: next, ...fields.chat(closed) } })
    assert.strictEqual(told.text, "binds2")
  })

  it("goes to the next target while the one that binds its schema is full", async () => {
    const first = held((request) => said("binds", request))
    farm.answer("binds", first.behaviour)
    const running = ask(plain, "mixed")
    await untilHolds(() => farm.seen("binds").length === 1)
    const told = await ask(plain, "mixed")
    assert.deepStrictEqual([told.text, told.headers.get("x-gateway-ignored")], ["unknown", null])
    first.releaseAll()
    assert.strictEqual((await running).text, "binds")
  })

  it("whose contract binds every schema asks a server that binds strict ones for that, if the schema may be strict", async () => {
    for (const style of ["messages", "generate"] as const) {
      for (const driver of ["openai", "responses"] as const) {
        const name = `binds-${driver}`
        farm.answer(name, (request) => said(name, request))
        assert.isNull((await ask({ style, stream: false }, `${name}/m`)).headers.get("x-gateway-ignored"))
        assert.include(JSON.stringify(bodyAt(name)), `"strict":true`)
        farm.answer(name, (request) => said(name, request))
        const told = await ask({ style, stream: false }, `${name}/m`, open)
        assert.strictEqual(told.headers.get("x-gateway-ignored"), names[style])
        assert.notInclude(JSON.stringify(bodyAt(name)), `"strict":true`)
      }
    }
  })

  it("with an open schema says nothing where the server's contract binds every schema", async () => {
    for (const style of ["chat", "messages", "generate"] as const) {
      for (const driver of ["messages", "generate"] as const) {
        const told = await ask({ style, stream: false }, `binds-${driver}/m`, open)
        assert.deepStrictEqual([told.text, told.headers.get("x-gateway-ignored")], [`binds-${driver}`, null])
      }
    }
  })

  it("goes to a server of the Responses API as its client wrote it", async () => {
    const told = await ask({ style: "responses", stream: false }, "tool-responses/m")
    assert.deepStrictEqual([told.text, told.headers.get("x-gateway-ignored")], ["tool-responses", "text.format"])
    assert.property(bodyAt("tool-responses"), "text")
  })

  it("with tools, or for a model without them or with a prompt for them, keeps its schema where the server reads none", async () => {
    const tool = { type: "function", function: { name: "look", parameters: closed } }
    const body = { ...fields.chat(closed), tools: [tool] }
    const told = await send(gateway, plain, "tool-openai/m", { body })
    assert.strictEqual(told.headers.get("x-gateway-ignored"), "response_format")
    assert.property(bodyAt("tool-openai"), "response_format")
    for (const name of ["reads", "prompts"]) {
      const without = await ask(plain, `${name}/m`)
      assert.strictEqual(without.headers.get("x-gateway-ignored"), "response_format")
      assert.property(bodyAt(name), "response_format")
    }
  })
})

describe("a server whose kind is tested", () => {
  it("binds every schema in the contracts in which the tests have shown that, and no others", async () => {
    const kinds: Readonly<Record<string, { readonly owner: string; readonly driver: DriverName }>> = {
      vllm: { owner: "vllm", driver: "openai" },
      llama: { owner: "llamacpp", driver: "messages" },
      ollama: { owner: "library", driver: "responses" }
    }
    const own = await startFarm()
    own.server.list((request) => json(200, { data: [{ id: "m", owned_by: kinds[nameOf(request)]?.owner }] }))
    const running = await startGateway({
      upstreams: Object.fromEntries(
        Object.entries(kinds).map(([name, { driver }]) => [name, own.upstream(name, { driver })])
      )
    })
    try {
      await untilHolds(async () => {
        const { models } = await admin(running.url, "GET", "/admin/models") as unknown as {
          readonly models: ReadonlyArray<{ readonly id: string; readonly facts: { readonly schemas?: object } }>
        }
        return models.find(({ id }) => id === "m")?.facts.schemas !== undefined
      })
      const way: Way = { style: "messages", stream: false }
      for (const [name, ignored] of [["vllm", null], ["ollama", null], ["llama", names.messages]] as const) {
        const told = await send(running, way, `${name}/m`, { body: { ...fields.messages(open) } })
        assert.deepStrictEqual([told.text, told.headers.get("x-gateway-ignored")], [name, ignored], told.body)
        if (ignored === null) assert.include(JSON.stringify(own.seen(name).at(-1)!.body), `"strict":true`)
      }
    } finally {
      await running.stop()
      await own.stop()
    }
  })

  it("binds schemas where the table of tested servers says nothing else", async () => {
    const rows = pageText("docs/servers/tested.md").split("\n").map((line) =>
      line.split("|").map((cell) => cell.trim())
    )
    const owners = { vLLM: "vllm", "llama.cpp": "llamacpp", Ollama: "library" }
    const tested = Object.entries(owners).flatMap(([server, owner]) =>
      (["openai", "responses", "messages"] as const).map((driver) => {
        const row = rows.find((cells) => cells[1] === server && cells[4] === `\`${driver}\``)
        assert.isDefined(row, `${server} by ${driver}`)
        const schemas = row!.join().includes("it does not follow schemas") ? "advisory" : "binding"
        return { name: `${owner}-${driver}`, owner, driver, schemas }
      })
    )
    const own = await startFarm()
    own.server.list((request) => {
      const name = nameOf(request)
      return json(200, { data: [{ id: name, owned_by: tested.find((each) => each.name === name)?.owner }] })
    })
    const running = await startGateway({
      upstreams: Object.fromEntries(
        tested.map(({ driver, name }) => [name, own.upstream(name, { driver, models: [name] })])
      )
    })
    try {
      const known = async () => {
        const { models } = await admin(running.url, "GET", "/admin/models") as unknown as {
          readonly models: ReadonlyArray<
            { readonly id: string; readonly facts: { readonly schemas?: { readonly value: string } } }
          >
        }
        return tested.map(({ name }) => [name, models.find(({ id }) => id === name)?.facts.schemas?.value])
      }
      await untilHolds(async () => (await known()).every(([, schemas]) => schemas !== undefined))
      assert.deepEqual(await known(), tested.map(({ name, schemas }) => [name, schemas]))
    } finally {
      await running.stop()
      await own.stop()
    }
  })
})
