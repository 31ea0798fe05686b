/**
 * Modules of the console that need no browser: parsed accounts, local tools, replies of each style.
 */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { parseAccounts } from "../../../src/web/pages/accounts/parseAccounts.ts"
import { blocksOf } from "../../../src/web/parts/Markdown.tsx"
import { collect } from "../../../src/web/playground/answers.ts"
import { styles } from "../../../src/web/playground/conversation.ts"
import { declaredTools, runTool } from "../../../src/web/playground/tools.ts"
import { wireOf } from "../../../src/web/playground/wire.ts"
import { dataOf } from "../../../src/web/state/frames.ts"
import { base, useGateway } from "../../styles/support.ts"
import { businessKey } from "../../support/gateway.ts"

const accountsIn = (text: string) => parseAccounts(text).map(({ account }) => account)

describe("parseAccounts in the console", () => {
  it.each([
    ["ada@example.com\tpass word", { email: "ada@example.com", password: "pass word" }],
    ["ada@example.com   secret", { email: "ada@example.com", password: "secret" }],
    ["ada@example.com----se:cr,et", { email: "ada@example.com", password: "se:cr,et" }],
    ["ada@example.com,a;b", { email: "ada@example.com", password: "a;b" }],
    ["ada@example.com;a|b", { email: "ada@example.com", password: "a|b" }],
    ["ada@example.com|a:b", { email: "ada@example.com", password: "a:b" }],
    ["ada@example.com:a b", { email: "ada@example.com", password: "a b" }],
    ["13800138000 pw", { mobile: "13800138000", password: "pw" }],
    ["+8613800138000----pw", { mobile: "+8613800138000", password: "pw" }],
    ["eyJhbGciOi.J9", { token: "eyJhbGciOi.J9" }],
    ["1234567", { token: "1234567" }],
    ["sess:with-a-colon", { token: "sess:with-a-colon" }],
    [`{"email":"a@b.c","password":"x","note":"mine","other":1}`, { email: "a@b.c", password: "x", note: "mine" }],
    ["neither this nor that", undefined]
  ])("parses the line: %s", (line, account) => {
    assert.deepStrictEqual(accountsIn(line), [account])
  })

  it("counts blank lines and comments in line numbers", () => {
    assert.deepStrictEqual(
      parseAccounts("\n# mine\r\nada@example.com x\n\n  # theirs\na-token\n"),
      [
        { line: 3, account: { email: "ada@example.com", password: "x" } },
        { line: 6, account: { token: "a-token" } }
      ]
    )
  })

  it("accepts JSON: a list, one account, or a configuration", () => {
    const account = { email: "a@b.c", password: "x" }
    for (const whole of [[account, "a-token"], { accounts: [account, "a-token"] }]) {
      assert.deepStrictEqual(accountsIn(JSON.stringify(whole, null, 2)), [account, { token: "a-token" }])
    }
    assert.deepStrictEqual(accountsIn(JSON.stringify(account, null, 2)), [account])
  })

  it("splits identity and password at any separator", () => {
    const word = fc.stringMatching(/^[\w.+-]{1,12}$/)
    const separator = fc.constantFrom("\t", " ", "   ", "----", ",", ";", "|", ":", " , ", " ---- ")
    const password = fc.stringMatching(/^[\w!$%][ -~]{0,12}$/).map((text) => text.trim())
    fc.assert(fc.property(
      fc.array(fc.tuple(word, separator, password), { minLength: 1, maxLength: 20 }),
      (lines) => {
        // Four dashes end an identity.
        fc.pre(lines.every(([name]) => !name.includes("----") && !name.endsWith("-")))
        assert.deepStrictEqual(
          accountsIn(lines.map(([name, between, secret]) => `x${name}@example.com${between}${secret}`).join("\n")),
          lines.map(([name, , secret]) => ({ email: `x${name}@example.com`, password: secret }))
        )
      }
    ))
  })

  it("accepts any text without throwing", () => {
    fc.assert(fc.property(fc.string({ unit: "binary" }), (text) => {
      for (const { line } of parseAccounts(text)) assert.isAtLeast(line, 1)
    }))
  })
})

describe("the playground's requests in the console", () => {
  const prompt = {
    model: "m",
    system: "",
    turns: [{ role: "user", text: "Look", image: "data:image/png;base64,QUJD" }],
    stream: false,
    tools: false,
    ownTools: [{ name: "f", description: "", parameters: { type: "object" } }],
    temperature: 0.5,
    maxTokens: 70,
    json: true
  } as const

  it("have their parameters, picture and tools where each style's contract has them", () => {
    const bodies = styles.map((style) => JSON.parse(JSON.stringify(wireOf({ ...prompt, style }).body)) as object)
    const [chat, responses, messages, generate] = bodies
    assert.deepInclude(chat, { temperature: 0.5, max_completion_tokens: 70, response_format: { type: "json_object" } })
    assert.deepInclude(responses, {
      temperature: 0.5,
      max_output_tokens: 70,
      text: { format: { type: "json_object" } }
    })
    assert.deepInclude(messages, { temperature: 0.5, max_tokens: 70 })
    assert.deepInclude(generate, {
      generationConfig: { temperature: 0.5, maxOutputTokens: 70, responseMimeType: "application/json" }
    })
    for (const body of bodies) {
      assert.include(JSON.stringify(body), "QUJD")
      assert.include(JSON.stringify(body), `"name":"f"`)
    }
  })

  it("take declarations of functions bare or in the chat style's wrapper, and nothing else", () => {
    assert.deepStrictEqual(declaredTools(" "), [])
    const declared = { name: "f", description: "d", parameters: { type: "object" } }
    for (const each of [declared, { type: "function", function: declared }]) {
      assert.deepStrictEqual(declaredTools(JSON.stringify([each])), [declared])
    }
    for (const text of ["{}", "[1]", `[{"description":"d"}]`, "not JSON"]) assert.isUndefined(declaredTools(text))
  })
})

describe("Markdown in the console", () => {
  it("keeps every line of a text, whatever it is", () => {
    const line = fc.oneof(
      fc.constantFrom("", "```", "```ts", "# a", "- b", "1. c", "d **e** `f`", "<script>"),
      fc.string({ maxLength: 8 }).filter((text) => !text.includes("\n"))
    )
    fc.assert(fc.property(fc.array(line), (lines) => {
      const kept = blocksOf(lines.join("\n")).flatMap((block) => block.lines)
      assert.deepStrictEqual(
        kept.filter((text) => text.trim() !== ""),
        lines.filter((text) => text.trim() !== "" && !/^\s*```/.test(text))
      )
    }))
  })
})

describe("the playground's local tools", () => {
  it("return the documented results", () => {
    const call = (name: string, given: unknown) => runTool({ id: "1", name, arguments: JSON.stringify(given) })
    assert.strictEqual(call("get_weather", { city: "Oslo" }), `{"city":"Oslo","temperature_c":21,"sky":"clear"}`)
    assert.strictEqual(call("add", { a: 2, b: 40 }), "42")
    assert.strictEqual(call("echo", { text: "as it is" }), "as it is")
    assert.isFalse(Number.isNaN(Date.parse(call("get_time", {}))))
    assert.match(call("no_such", {}), /error/)
  })
})

describe("the playground's collected replies", () => {
  const fetch = useGateway()

  it.each(styles)("%s: a streamed reply gives the same answer as a whole one", async (style) => {
    const answers = []
    for (const stream of [true, false]) {
      const { body, path } = wireOf({
        style,
        model: "upstream-reasoner",
        system: "Be brief.",
        turns: [{ role: "user", text: "use get_weather for Oslo" }],
        stream,
        tools: true,
        ownTools: [],
        temperature: undefined,
        maxTokens: undefined,
        json: false
      })
      const response = await fetch(base + path, {
        method: "POST",
        headers: { authorization: `Bearer ${businessKey}` },
        body: JSON.stringify(body)
      })
      assert.strictEqual(response.status, 200)
      const text = await response.text()
      const reply = collect(style)
      if (stream) {
        for (const frame of text.split("\n\n")) {
          const { data, event } = dataOf(frame)
          if (data !== "") reply.take(data, { event: event || undefined })
        }
      } else reply.take(text)
      reply.end()
      answers.push(reply.answer())
    }
    const [streamed, whole] = answers
    for (const answer of [streamed!, whole!]) {
      assert.deepInclude(answer.calls[0], { name: "get_weather", arguments: `{"city":"Oslo"}` })
      assert.notStrictEqual(answer.reasoning, "")
      assert.isDefined(answer.finish)
      assert.isUndefined(answer.error)
    }
    assert.strictEqual(streamed!.reasoning, whole!.reasoning)
  })

  it.each(styles)("%s: a refusal gives the gateway's error message", (style) => {
    for (
      const refusal of [{ error: { message: "No." } }, { type: "error", error: { message: "No." } }, { detail: "No." }]
    ) {
      const reply = collect(style)
      reply.take(JSON.stringify(refusal))
      assert.strictEqual(reply.answer().error, "No.")
    }
  })
})
