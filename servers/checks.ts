// What the gateway must do in front of a real server, for each of its drivers and each API of callers. Each case is a sentence; it holds, or
// its fault says what was seen.
import { businessKey, type RunningGateway, startGateway } from "../test/support/gateway.ts"
import { runAgent } from "./agent.ts"
import { type Api, apis, ask, type Question, type Reply, type Turn } from "./apis.ts"
import type { ModelName } from "./models.ts"
import { until } from "./processes.ts"
import type { RealServer } from "./realServers.ts"

/** The drivers of the gateway for such servers. */
export type Driver = "openai" | "responses" | "messages"

/** The API of each driver's server. */
const apiOf: Readonly<Record<Driver, Api>> = { openai: "chat", responses: "Responses", messages: "messages" }

/** The checks, in the order of the table. */
export const checkNames = [
  "text",
  "tools",
  "thinking",
  "structured",
  "limits",
  "leaving",
  "models",
  "restart",
  "failover",
  "embeddings",
  "relayed",
  "agent"
] as const
export type CheckName = typeof checkNames[number]

/** The result of a case. */
export interface Result {
  readonly check: CheckName
  readonly driver: Driver
  readonly api: Api | undefined
  readonly title: string
  /** What was seen in place of what the title says. */
  readonly fault?: string
  /** The server cannot do it, by its own answer. */
  readonly lacks?: string
}

class Fault extends Error {}

class Lacking extends Error {}

/** Milliseconds that the gateway waits for the first event of a server's reply, as its default says. */
const longestFirst = 30_000

const shorten = (text: string): string => text.length > 600 ? `${text.slice(0, 400)} … ${text.slice(-150)}` : text

const show = (value: unknown): string => shorten(typeof value === "string" ? value : JSON.stringify(value))

const sameAs = (what: string, got: unknown, expected: unknown): void => {
  if (JSON.stringify(got) !== JSON.stringify(expected)) {
    throw new Fault(`${what}: ${show(got)}; the server says ${show(expected)}`)
  }
}

const holds = (isTrue: boolean, what: string, reply?: Reply): void => {
  if (!isTrue) throw new Fault(reply === undefined ? what : `${what}; ${reply.status} ${show(reply.raw)}`)
}

const isAnswered = (reply: Reply): void => {
  holds(reply.status === 200 && reply.error === undefined && reply.finish !== undefined, "no whole answer", reply)
}

const weather = {
  name: "get_weather",
  parameters: {
    type: "object",
    properties: { city: { type: "string" } },
    required: ["city"],
    additionalProperties: false
  }
}
const time = {
  name: "get_time",
  parameters: {
    type: "object",
    properties: { zone: { enum: ["utc", "local"] } },
    required: ["zone"],
    additionalProperties: false
  }
}

const jsonOf = (text: string): Record<string, unknown> | undefined => {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
}

/** Whether a reply says that the most output has ended it. */
const isLimited = ({ finish = "" }: Reply): boolean =>
  /^(?:length|max_tokens|MAX_TOKENS|max_output_tokens)$/.test(finish)

/** Whether a reply has calls, each by its schema. */
const isForced = ({ calls }: Reply): boolean =>
  calls.length > 0 && calls.every((call) => {
    const args = call.arguments as Record<string, unknown> | undefined
    return call.name === "get_weather"
      ? typeof args?.["city"] === "string"
      : call.name === "get_time" && (args?.["zone"] === "utc" || args?.["zone"] === "local")
  })

const hello: ReadonlyArray<Turn> = [{ user: "Say something." }]

/** A picture of one pixel, and one that is broken. */
const brokenPicture = "AAAA"

/** Milliseconds within which a server must stop after its client has left. */
const longestStop = 2_000

/** Milliseconds for an answer that is under way to end. */
const longestAnswer = 120_000

/** Milliseconds within which a server that is back must be used again. */
const longestBack = 40_000

/** The cases of one server behind one driver. */
export const checkServer = async (
  server: RealServer,
  driver: Driver,
  wanted: ReadonlySet<CheckName>,
  done: (result: Result) => void
): Promise<void> => {
  const gateways = new Map<string, RunningGateway>()
  const native = apiOf[driver]

  /** A gateway in front of the process that serves a model. */
  const gatewayFor = async (model: ModelName, upstream: Record<string, unknown> = {}) => {
    const { url } = await server.serving(model)
    const key = JSON.stringify([url, server.isListed === false ? model : "", upstream])
    const base = driver === "messages" ? url : `${url}/v1`
    const gateway = gateways.get(key) ??
      await startGateway({
        upstream: {
          driver,
          base_url: base,
          ...(server.isListed === false ? { models: { [model]: model } } : {}),
          ...server.upstream,
          ...upstream
        },
        ...(server.key === undefined ? {} : { accounts: [{ token: server.key }] }),
        embeddings: { provider: "upstream" }
      })
    gateways.set(key, gateway)
    return gateway
  }

  const name = async (model: ModelName) => (await server.serving(model)).model

  /** The headers of a request to the server itself, or to a gateway. */
  const headersFor = (base: string) => {
    const isGateway = [...gateways.values()].some((gateway) => gateway.url === base)
    const key = isGateway ? businessKey : server.key
    return { "content-type": "application/json", ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) }
  }

  /** Asks through the gateway. */
  const via = async (
    api: Api,
    model: ModelName,
    question: Question,
    streamed = false,
    upstream: Record<string, unknown> = {},
    onPiece?: (text: string) => void
  ) =>
    ask({
      url: (await gatewayFor(model, upstream)).url,
      key: businessKey,
      model: await name(model),
      api,
      streamed,
      ...(onPiece === undefined ? {} : { onPiece })
    }, question)

  /** Asks the server by the API of the driver. */
  const direct = async (model: ModelName, question: Question) => {
    const serving = await server.serving(model)
    return ask({ ...serving, ...(server.key === undefined ? {} : { key: server.key }), api: native }, question)
  }

  /** The question that the gateway sends for clients of an API. It marks functions of other APIs as not strict, because the Responses API's default is strict. */
  const asOf = (api: Api, question: Question): Question => api === native ? question : { ...question, strict: false }

  const testCase = async (check: CheckName, api: Api | undefined, title: string, run: () => Promise<void>) => {
    if (!wanted.has(check)) return
    try {
      await run()
      done({ check, driver, api, title })
    } catch (error) {
      if (error instanceof Lacking) done({ check, driver, api, title, lacks: error.message })
      else done({ check, driver, api, title, fault: error instanceof Fault ? error.message : String(error) })
    }
  }

  /** Ends a case if the server, asked directly, does not do what the case is about. What the gateway says of it must be no error of its own. */
  const lacksUnless = (does: boolean, what: string, own: Reply, got?: Reply): void => {
    if (does) return
    holds(got === undefined || got.status < 500, "an error of the server", got)
    throw new Lacking(`${what}: ${own.error ?? shorten(own.raw)}`.slice(0, 300))
  }

  /** Whether the server, asked directly, begins its reply to a prompt as long as an agent's in the time that the gateway gives it. */
  const readsLongPrompts = async (): Promise<boolean> => {
    const serving = await server.serving("agent")
    const key = server.key === undefined ? {} : { key: server.key }
    const question: Question = { turns: [{ user: "word ".repeat(1_200) }], maxTokens: 5 }
    const signal = AbortSignal.timeout(longestFirst)
    try {
      return (await ask({ ...serving, ...key, api: native, streamed: true, signal }, question)).status === 200
    } catch (error) {
      if (signal.aborted) return false
      throw error
    }
  }

  /** The server, asked directly, has been seen to go on after its client has left. */
  let goesOn = false

  const both = [false, true] as const
  const word = (streamed: boolean) => streamed ? "streamed" : "whole"

  for (const api of apis) {
    for (const streamed of both) {
      await testCase("text", api, `a text, ${word(streamed)}, is the server's`, async () => {
        const question = { turns: hello, maxTokens: 60, temperature: 0 }
        const [own, got] = [await direct("writer", question), await via(api, "writer", question, streamed)]
        isAnswered(own)
        isAnswered(got)
        sameAs("the text", got.text, own.text)
        sameAs("the usage", got.usage, own.usage)
      })
      await testCase("text", api, `a text by a seed, ${word(streamed)}, is the server's`, async () => {
        // The gateway sends a seed where the server's own contract has one, and as the caller wrote it.
        if (api === "messages" || (driver !== "openai" && api !== native)) return
        const question = { turns: hello, maxTokens: 90, temperature: 1, seed: 7 }
        const [own, got] = [await direct("writer", question), await via(api, "writer", question, streamed)]
        isAnswered(own)
        isAnswered(got)
        if (own.text !== (await direct("writer", question)).text) throw new Lacking("its texts by a seed differ")
        sameAs("the text", got.text, own.text)
        sameAs("the usage", got.usage, own.usage)
      })
      await testCase("tools", api, `a call that the model chooses, ${word(streamed)}, is a call`, async () => {
        const got = await via(
          api,
          "caller",
          { turns: hello, tools: [weather], temperature: 0, maxTokens: 300 },
          streamed
        )
        isAnswered(got)
        sameAs("the calls", got.calls.map((call) => [call.name, call.arguments]), [["get_weather", { city: "Paris" }]])
        sameAs("the text", got.text.trim(), "")
      })
      await testCase(
        "tools",
        api,
        `a call that the caller requires, ${word(streamed)}, follows its schema`,
        async () => {
          const question = {
            turns: hello,
            tools: [weather, time],
            choice: "required",
            seed: 3,
            maxTokens: 250
          } as const
          const got = await via(api, "beginner", question, streamed)
          const own = await direct("beginner", question)
          lacksUnless(isForced(own), "it does not force calls", own, got)
          isAnswered(got)
          holds(isForced(got), "no call that fits", got)
        }
      )
      await testCase(
        "tools",
        api,
        `a call of a certain tool, ${word(streamed)}, is one of that tool or an error`,
        async () => {
          const question = {
            turns: hello,
            tools: [weather, time],
            choice: { name: "get_time" },
            seed: 3,
            maxTokens: 250
          }
          const got = await via(api, "beginner", question, streamed)
          const isNamed = (reply: Reply) => isForced(reply) && reply.calls.every((call) => call.name === "get_time")
          if (isNamed(await direct("beginner", question))) {
            isAnswered(got)
            holds(isNamed(got), "no call that fits", got)
          } else {
            // A reply in the server's own contract is the server's.
            const isOwn = driver !== "openai" && api === native
            // The arguments are those that the server made. It refuses its own with a 400 if they are not an object.
            const isOfTool = got.calls.length > 0 && got.calls.every((call) => call.name === "get_time")
            holds(
              isOwn || isOfTool || isLimited(got) || /tool|The upstream refused the request/.test(got.error ?? ""),
              "neither the call nor an error",
              got
            )
            throw new Lacking("it does not force calls of a certain tool")
          }
        }
      )
      await testCase("tools", api, `without permission to call, ${word(streamed)}, nothing is called`, async () => {
        const question = { turns: hello, tools: [weather], choice: "none", temperature: 0, maxTokens: 60 } as const
        const got = await via(api, "caller", question, streamed)
        isAnswered(got)
        const own = await direct("caller", question)
        lacksUnless(own.calls.length === 0 && own.status === 200, "it calls without permission", own, got)
        sameAs("the calls", got.calls, [])
      })
      await testCase(
        "tools",
        api,
        `results of two rounds, ${word(streamed)}, reach the server as its own form`,
        async () => {
          const turns: Array<Turn> = [...hello]
          for (let round = 0; round < 2; round++) {
            const got = await via(api, "caller", { turns, tools: [weather], temperature: 0, maxTokens: 300 }, streamed)
            isAnswered(got)
            holds(got.calls.length === 1, "no call", got)
            turns.push({ assistant: "", calls: got.calls }, { result: `It rains ${round}.`, of: got.calls[0]! })
          }
          const question = { turns, tools: [weather], temperature: 0, maxTokens: 300 }
          const own = await direct("caller", asOf(api, question))
          const got = await via(api, "caller", question, streamed)
          isAnswered(got)
          sameAs("the prompt's tokens", got.usage?.input, own.usage?.input)
        }
      )
    }
    for (const thinking of ["on", "off", 2048] as const) {
      for (const streamed of both) {
        const title = `thinking ${typeof thinking === "number" ? "by a budget" : thinking}, ${
          word(streamed)
        }, is the server's`
        await testCase("thinking", api, title, async () => {
          const upstream = driver === "openai" && server.thinking !== undefined
            ? { models: { [await name("thinker")]: { model: await name("thinker"), thinking: server.thinking } } }
            : {}
          const question = { turns: hello, maxTokens: 600, temperature: 1, seed: 5, thinking }
          const got = await via(api, "thinker", question, streamed, upstream)
          if (driver !== "openai") {
            const own = await direct("thinker", question)
            lacksUnless(own.status === 200, "it takes no words about thinking", own, got)
            if (thinking === "off") lacksUnless(own.thinking === "", "it thinks all the same", own, got)
            else lacksUnless(own.thinking !== "", "it shows no thinking", own, got)
          }
          isAnswered(got)
          holds(/^[a-z" ]+$/.test(got.text.trim()), "a text that is not the answer alone", got)
          holds(
            (got.thinking !== "") === (thinking !== "off"),
            `thinking is ${got.thinking === "" ? "absent" : "shown"}`,
            got
          )
          holds(got.thinking === "" || /^[A-Z-]+$/.test(got.thinking.trim()), "thinking that is not the model's", got)
        })
      }
    }
    await testCase("thinking", api, "thinking of an earlier turn reaches the server as its own field", async () => {
      const turns: ReadonlyArray<Turn> = [
        ...hello,
        { assistant: "", thinking: "ABCDEFGH", calls: [{ name: "get_weather", arguments: { city: "Paris" } }] },
        { result: "It rains.", of: { name: "get_weather", arguments: {} } }
      ]
      const question = { turns, tools: [weather], maxTokens: 20, temperature: 0 }
      const own = await direct("thinker", asOf(api, question))
      const got = await via(api, "thinker", question)
      lacksUnless(own.status === 200, "it takes no thinking of earlier turns", own, got)
      isAnswered(got)
      // Thinking of the messages API without a seal is dropped by the gateway towards a messages server.
      if (driver === "messages") return
      sameAs("the prompt's tokens", got.usage?.input, own.usage?.input)
    })
    for (const streamed of both) {
      await testCase("structured", api, `JSON by a schema, ${word(streamed)}, follows it`, async () => {
        const schema = {
          type: "object",
          properties: { count: { type: "integer", minimum: 0, maximum: 99 }, kind: { enum: ["small", "large"] } },
          required: ["count", "kind"],
          additionalProperties: false
        }
        const question = { turns: hello, schema, temperature: 1, seed: 3, maxTokens: 250 }
        const fits = (reply: Reply) => {
          const value = jsonOf(reply.text)
          return Number.isInteger(value?.["count"]) && ["small", "large"].includes(String(value?.["kind"]))
        }
        const got = await via(api, "writer", question, streamed)
        const own = await direct("writer", question)
        lacksUnless(fits(own), "it does not follow schemas", own, got)
        isAnswered(got)
        holds(fits(got), "another value", got)
      })
      await testCase("structured", api, `a stop sequence, ${word(streamed)}, ends the text`, async () => {
        const question = { turns: hello, maxTokens: 60, temperature: 0 }
        const own = await direct("writer", question)
        const stop = own.text.slice(1, 3)
        const got = await via(api, "writer", { ...question, stop: [stop] }, streamed)
        isAnswered(got)
        sameAs("the text", got.text, own.text.slice(0, own.text.indexOf(stop)))
        holds(/^(?:stop|end_turn|stop_sequence|STOP|completed)$/.test(got.finish!), `the end is ${got.finish}`, got)
      })
      await testCase("structured", api, `the most output, ${word(streamed)}, is said as the end`, async () => {
        const question = { turns: hello, maxTokens: 20, temperature: 0 }
        const got = await via(api, "endless", question, streamed)
        isAnswered(got)
        const own = await direct("endless", question)
        lacksUnless(isLimited(own), "it does not say that the most output ended a reply", own, got)
        holds(got.usage?.output === 20, "other usage", got)
        holds(isLimited(got), `the end is ${got.finish}`, got)
      })
    }
    await testCase("limits", api, "a prompt beyond the context window is the caller's fault", async () => {
      const question = { turns: [{ user: "a b ".repeat(4000) }], maxTokens: 10 }
      const own = await direct("writer", question)
      lacksUnless(own.status >= 400, "it cuts the prompt", own)
      for (const streamed of both) {
        const got = await via(api, "writer", question, streamed)
        holds(got.status === 400 && /context|too long|length/i.test(got.error ?? ""), "no refusal that helps", got)
      }
    })
    await testCase("limits", api, "an unknown model is the caller's fault", async () => {
      const gateway = await gatewayFor("writer")
      const got = await ask({ url: gateway.url, key: businessKey, model: "nonesuch:7b", api }, {
        turns: hello,
        maxTokens: 5
      })
      holds((got.status === 400 || got.status === 404) && /model/i.test(got.error ?? ""), "no refusal that helps", got)
    })
    await testCase("limits", api, "a picture that the model cannot see is the caller's fault", async () => {
      const question = { turns: hello, maxTokens: 5, image: brokenPicture }
      const got = await via(api, "writer", question)
      const own = await direct("writer", question)
      lacksUnless(own.status >= 400, "it ignores pictures", own, got)
      holds(got.status >= 400 && got.status < 500 && (got.error ?? "").length > 10, "no refusal that helps", got)
    })
    await testCase("limits", api, "a schema that does not exist is the caller's fault", async () => {
      const got = await via(api, "writer", { turns: hello, maxTokens: 5, schema: { type: "nonsense" } })
      const own = await direct("writer", { turns: hello, maxTokens: 5, schema: { type: "nonsense" } })
      lacksUnless(own.status >= 400, "it takes any schema", own, got)
      holds(got.status >= 400 && got.status < 500 && (got.error ?? "").length > 10, "no refusal that helps", got)
    })
    for (const streamed of [true, false]) {
      await testCase("leaving", api, `a client that leaves, ${word(streamed)}, stops the server`, async () => {
        /** Milliseconds until the server stops after its client has left; `undefined` if it goes on. */
        const stopAfter = async (url: string, key: string | undefined) => {
          await until(longestAnswer, async () => !await server.isBusy("endless"))
          const controller = new AbortController()
          let begun = false
          const asked = ask({
            url,
            ...(key === undefined ? {} : { key }),
            model: await name("endless"),
            api: url === gateway.url ? api : native,
            streamed,
            signal: controller.signal,
            onPiece: () => {
              begun = true
            }
          }, { turns: hello, maxTokens: 8000, temperature: 1 }).catch(() => undefined)
          const busy = await until(10_000, async () => (begun || !streamed) && await server.isBusy("endless"))
          holds(busy !== undefined, "the server did not begin")
          controller.abort()
          await asked
          return until(5_000, async () => !await server.isBusy("endless"))
        }
        const gateway = await gatewayFor("endless")
        const stopped = await stopAfter(gateway.url, businessKey)
        if (stopped !== undefined && stopped <= longestStop) return
        const { url } = await server.serving("endless")
        // Whether a server stops may depend on the moment at which its client leaves.
        for (let tries = 0; !goesOn && tries < 5; tries++) {
          const own = await stopAfter(url, server.key)
          goesOn = own === undefined || own > longestStop
        }
        if (goesOn) throw new Lacking("it goes on after its client has left")
        throw new Fault(`it worked on for ${stopped?.toFixed(0) ?? "more than 5000"} ms`)
      })
    }
  }

  await testCase("models", undefined, "the server's model is listed, and served by its own name", async () => {
    const gateway = await gatewayFor("writer")
    const response = await fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${businessKey}` } })
    const list = await response.json() as { readonly data: ReadonlyArray<{ readonly id: string }> }
    const own = await name("writer")
    holds(list.data.some(({ id }) => id === own), `the list has ${list.data.map(({ id }) => id).join(", ")}`)
  })

  if (driver === "openai") {
    await testCase(
      "structured",
      "chat",
      "log probabilities, penalties and several choices are the server's",
      async () => {
        const fields = { logprobs: true, top_logprobs: 2, presence_penalty: 0.5, frequency_penalty: 0.5 }
        const question = { turns: hello, maxTokens: 8, temperature: 0, fields }
        const [own, got] = [await direct("writer", question), await via("chat", "writer", question)]
        isAnswered(got)
        const probabilities = (reply: Reply) =>
          (JSON.parse(reply.raw) as {
            choices: ReadonlyArray<{ logprobs?: { content?: ReadonlyArray<{ token: string }> } }>
          })
            .choices[0]?.logprobs?.content?.map(({ token }) => token)
        sameAs("the text", got.text, own.text)
        sameAs("the probabilities", probabilities(got), probabilities(own))
      }
    )
    await testCase("embeddings", undefined, "vectors are the server's", async () => {
      const { model, url } = await server.serving("embedder")
      const body = JSON.stringify({ model, input: ["a door", "a wall"] })
      const vectors = async (base: string) => {
        const response = await fetch(`${base}/v1/embeddings`, { method: "POST", headers: headersFor(base), body })
        const text = await response.text()
        if (response.status === 404 && base === url) throw new Lacking("it makes no vectors")
        if (response.status !== 200) throw new Fault(`${response.status} ${shorten(text)}`)
        const { data, usage } = JSON.parse(text) as {
          data: ReadonlyArray<{ embedding: ReadonlyArray<number> }>
          usage: { prompt_tokens: number }
        }
        return {
          vectors: data.map(({ embedding }) => embedding.map((value) => value.toFixed(4))),
          tokens: usage.prompt_tokens
        }
      }
      const own = await vectors(url)
      sameAs("the vectors", await vectors((await gatewayFor("embedder")).url), own)
    })
    await testCase("relayed", undefined, "a ranking of documents is the server's", async () => {
      const { model, url } = await server.serving("ranker")
      // A request has one document: with several, the scores of llama.cpp depend on how it batches them.
      const scores = async (base: string) => {
        const found = []
        for (const document of ["a wall", "doors", "the sea"]) {
          const body = JSON.stringify({ model, query: "a door", documents: [document] })
          const response = await fetch(`${base}/v1/rerank`, { method: "POST", headers: headersFor(base), body })
          const text = await response.text()
          if (response.status >= 400 && base === url) throw new Lacking("it ranks no documents")
          if (response.status !== 200) throw new Fault(`${response.status} ${shorten(text)}`)
          const { results } = JSON.parse(text) as { results: ReadonlyArray<{ relevance_score: number }> }
          found.push(results[0]?.relevance_score.toFixed(3))
        }
        return found
      }
      const own = await scores(url)
      sameAs("the scores", await scores((await gatewayFor("ranker")).url), own)
    })
    await testCase("relayed", undefined, "a completion of a text, whole and streamed, is the server's", async () => {
      const { model, url } = await server.serving("writer")
      const gateway = await gatewayFor("writer")
      for (const stream of both) {
        const body = JSON.stringify({ model, prompt: "a door", max_tokens: 20, temperature: 0, stream })
        const texts = await Promise.all([url, gateway.url].map(async (base) => {
          const text =
            await (await fetch(`${base}/v1/completions`, { method: "POST", headers: headersFor(base), body })).text()
          return [...text.matchAll(/"text":\s*("(?:[^"\\]|\\.)*")/g)].map(([, piece]) => JSON.parse(piece!) as string)
            .join("")
        }))
        holds(texts[0] !== "", "no text")
        sameAs("the text", texts[1], texts[0])
      }
    })
  }

  await testCase("agent", "chat", "an agent runs the command that the model calls for", async () => {
    const { output, ran } = await runAgent((await gatewayFor("agent")).url, businessKey, await name("agent"))
    if (!ran && !(await readsLongPrompts())) throw new Lacking("it reads a prompt as long as an agent's too slowly")
    holds(ran, `the agent prints: ${shorten(output)}`)
  })

  for (const api of apis) {
    await testCase("restart", api, "a server that dies in a stream leaves an unfinished reply", async () => {
      let begun = false
      const asked = via(api, "endless", { turns: hello, maxTokens: 8000, temperature: 1 }, true, {}, () => {
        begun = true
      })
      const working = await until(20_000, () => begun)
      holds(working !== undefined, "no reply began")
      await server.kill("endless")
      const got = await asked
      holds(got.error !== undefined, "the reply says nothing of it", got)
      holds(got.finish === undefined || /error|fail/i.test(got.finish), `the reply ends with ${got.finish}`, got)
    })
    await testCase("restart", api, "a server that is away is an error, and one that is back is used", async () => {
      const [gateway, model] = [await gatewayFor("endless"), await name("endless")]
      await server.kill("endless")
      const away = await ask({ url: gateway.url, key: businessKey, model, api }, { turns: hello, maxTokens: 5 })
      holds(away.status >= 500 && (away.error ?? "") !== "", "no error", away)
      await server.serving("endless")
      const back = await until(
        longestBack,
        async () => (await via(api, "endless", { turns: hello, maxTokens: 5 })).status === 200
      )
      holds(back !== undefined, "it is not used again")
    })
  }

  const [first, second] = [await server.serving("writer"), await server.serving("thinker")]
  // A server of one process for all models has no other one to go to.
  if (wanted.has("failover") && first.url !== second.url) {
    const upstreamAt = ({ model, url }: typeof first) => ({
      driver,
      base_url: driver === "messages" ? url : `${url}/v1`,
      models: { m: model },
      ...server.upstream
    })
    const gateway = await startGateway({
      upstream: { driver: "embedded" },
      upstreams: { first: upstreamAt(first), second: upstreamAt(second) },
      routes: { either: ["first/m", "second/m"] },
      ...(server.key === undefined
        ? {}
        : { accounts: ["first", "second"].map((upstream) => ({ upstream, token: server.key! })) })
    })
    for (const api of apis) {
      const answeredBy = async (streamed: boolean) => {
        const sending = { url: gateway.url, key: businessKey, model: "either", api, streamed }
        const got = await ask(sending, { turns: hello, maxTokens: 20 })
        isAnswered(got)
        return got.upstream
      }
      await testCase(
        "failover",
        api,
        "another server answers while the first one is away, and not once it is back",
        async () => {
          await server.serving("writer")
          // A server may close an idle connection just when a request begins; then the other one answers too.
          const usual = await until(longestBack, async () => await answeredBy(false) === "first")
          holds(usual !== undefined, "the first one does not answer")
          await server.kill("writer")
          for (const streamed of both) sameAs("the server", await answeredBy(streamed), "second")
          await server.serving("writer")
          const back = await until(longestBack, async () => await answeredBy(true) === "first")
          holds(back !== undefined, "the first one is not used again")
        }
      )
    }
    await gateway.stop()
  }

  for (const gateway of gateways.values()) await gateway.stop()
}
