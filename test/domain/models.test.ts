import { assert, describe, it } from "@effect/vitest"
import { routeNotFound } from "../../src/domain/routeNotFound.ts"
import {
  makeRouteTable,
  type NameFamily,
  resolveRoute,
  type RouteConfig,
  type RouteTable,
  withListed
} from "../../src/domain/routes.ts"

const config: RouteConfig = {
  upstreams: [{
    name: "default",
    driver: "openai",
    isHome: false,
    enabled: true,
    models: [{ id: "Local-70B", reasoning: false, search: false }]
  }],
  unnamed: "default",
  routes: [],
  aliases: new Map([["my-model", "upstream-reasoner"], ["gpt-4o", "upstream-chat-search"], ["big", "local-70b"]]),
  mapping: { fast: "upstream-chat", slow: "upstream-reasoner" },
  families: true,
  mapped: undefined,
  listed: undefined
}
const sessions = { ...config.upstreams[0]!, driver: "session" }
const tableOf = (changes: Partial<RouteConfig>) => makeRouteTable({ ...config, ...changes })
const table = tableOf({ upstreams: [sessions] })
const answer = (routes: RouteTable, name: string, family: NameFamily = "usual") =>
  resolveRoute(routes, family, name)?.targets[0]?.model.id
const resolved = (name: string) => answer(table, name)

describe("model names", () => {
  it("resolve to native models first, then to configured ids and aliases, then to families", () => {
    assert.strictEqual(resolved("upstream-chat"), "upstream-chat")
    assert.strictEqual(resolved("local-70b"), "Local-70B")
    assert.strictEqual(resolved("my-model"), "upstream-reasoner")
    assert.strictEqual(resolved("gpt-4o"), "upstream-chat-search")
    assert.strictEqual(resolved("big"), "Local-70B")
    assert.strictEqual(resolved("gpt-4o-mini"), "upstream-chat")
  })

  it("ignore case and surrounding blanks", () => {
    assert.strictEqual(resolved("  GPT-4.1 "), "upstream-chat")
    assert.strictEqual(resolved(" Upstream-Reasoner"), "upstream-reasoner")
  })

  it("select reasoning and search by the words in them", () => {
    for (const name of ["o1-mini", "o3", "o4-mini", "gpt-5-codex", "claude-opus-4", "qwen-r1", "kimi-k2-thinking"]) {
      assert.strictEqual(resolved(name), "upstream-reasoner", name)
    }
    assert.strictEqual(resolved("gpt-4o-search-preview"), "upstream-chat-search")
    assert.strictEqual(resolved("o3-search"), "upstream-reasoner-search")
  })

  it("do not resolve when unknown", () => {
    for (const name of ["", "davinci", "upstream", "my-model-2"]) assert.strictEqual(resolved(name), undefined, name)
  })
})

describe("names of a server's own form", () => {
  const small = { id: "small", reasoning: false, search: false }
  const server = withListed(tableOf({ mapped: new Map([["qwen2.5-coder:7b", small]]) }), [
    "Qwen/Qwen3-8B",
    "llava:latest"
  ])
  const of = (name: string) => answer(server, name)

  it("mean the server's models", () => {
    assert.strictEqual(of("qwen/qwen3-8b"), "Qwen/Qwen3-8B")
    assert.strictEqual(of("llava"), "llava:latest")
    assert.strictEqual(of("qwen2.5-coder:7b"), "small")
  })

  it("do not resolve by the family of an open model, also misspelled and without a tag", () => {
    for (
      const name of [
        "qwen3:32b",
        "Qwen/Qwen3-32B",
        "gpt-oss:20b",
        "gpt-oss-120b",
        "llama-3.3-70b-instruct",
        "glm-4.5:latest",
        "qwen3-0.6b-q4_k_m.gguf",
        "qwen3-codr",
        "qwen",
        "mistral-nemo",
        "command-r",
        "kimi-k2-thinking",
        "glm-4.5",
        "gpt-oss",
        "qwen-max:7b"
      ]
    ) {
      assert.strictEqual(of(name), undefined, name)
      assert.isDefined(answer(table, name), `${name} where the upstream is not a server`)
    }
    for (const name of ["qwen-max", "qwen3-coder-plus", "mistral-large-latest", "claude-sonnet-4-5@20250929"]) {
      assert.strictEqual(of(name), "upstream-chat", name)
    }
  })

  it("do not resolve by the family of an open model where a named server answers first", () => {
    const gpu = { ...sessions, name: "gpu", driver: "openai", models: [{ ...small, id: "upstream-chat" }] }
    assert.isUndefined(answer(tableOf({ upstreams: [gpu] }), "qwen3-codr"))
    assert.strictEqual(answer(tableOf({ upstreams: [gpu] }), "gpt-5"), "upstream-chat")
    assert.strictEqual(answer(tableOf({ upstreams: [sessions, gpu] }), "qwen3-codr"), "upstream-chat")
  })

  it("come after the configuration's ids and aliases, and before the families", () => {
    const listed = withListed(server, ["upstream-chat", "LOCAL-70B", "gpt-4o", "gpt-4o-mini"])
    assert.strictEqual(answer(listed, "local-70b"), "Local-70B")
    assert.strictEqual(answer(listed, "gpt-4o"), "upstream-chat-search")
    assert.strictEqual(answer(listed, "gpt-4o-mini"), "gpt-4o-mini")
  })

  it("mean nothing if the server of another upstream lists them", () => {
    const elsewhere = withListed(server, ["other:7b"], "hosted")
    assert.strictEqual(answer(elsewhere, "other:7b"), undefined)
    assert.strictEqual(answer(elsewhere, "llava"), "llava:latest")
  })

  it("are suggested for a misspelled one", () => {
    const meant = (name: string) => routeNotFound(server, undefined, name).message
    assert.match(meant("lava:latest"), /did you mean "llava:latest"\?$/)
    assert.match(meant("lava"), /did you mean "llava:latest"\?$/)
    assert.match(meant("qwen3-8"), /did you mean "Qwen\/Qwen3-8B"\?$/)
    const unlisted = tableOf({ mapped: new Map([["qwen2.5-coder:7b", small]]) })
    assert.match(routeNotFound(unlisted, undefined, "qwen2.5-codr").message, /did you mean "qwen2.5-coder:7b"\?$/)
  })
})

describe("names of families", () => {
  it("are unknown where they are off, except by the mapping of the messages style", () => {
    const strict = tableOf({ families: false })
    for (const name of ["gpt-4.1", "claude-opus-4", "qwen-max", "o3"]) {
      assert.strictEqual(answer(strict, name), undefined, name)
    }
    assert.strictEqual(answer(strict, "claude-opus-4", "mapped"), "upstream-reasoner")
    assert.strictEqual(answer(strict, "gpt-4.1", "mapped"), undefined)
  })
})

describe("messages-style names", () => {
  const of = (name: string) => answer(table, name, "mapped")
  const fastAs = (fast: string) => answer(tableOf({ mapping: { ...config.mapping, fast } }), "claude-x", "mapped")

  it("resolve by the mapping in the style's own family", () => {
    assert.strictEqual(of("msgcompat-sonnet-4-5"), "upstream-chat")
    assert.strictEqual(of("msgcompat-opus-4-6"), "upstream-reasoner")
    assert.strictEqual(of("claude-haiku-4-5"), "upstream-chat")
    assert.strictEqual(fastAs("big"), undefined)
    assert.strictEqual(fastAs("local-70b"), "Local-70B")
  })

  it("resolve like in other styles outside that family", () => {
    assert.strictEqual(of("upstream-chat-search"), "upstream-chat-search")
    assert.strictEqual(of("my-model"), "upstream-reasoner")
    assert.strictEqual(of("o3"), "upstream-reasoner")
    assert.strictEqual(of("nothing"), undefined)
  })
})
