import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import { sha256Hex } from "../../src/config/json.ts"
import {
  type App,
  ClientIdentity,
  identityHeaders,
  type RequestHeaders,
  type SessionPrivacy
} from "../../src/domain/clientIdentity.ts"

const identityOf = (headers: RequestHeaders, body?: unknown, privacy: SessionPrivacy = "full") => {
  const identity = new ClientIdentity(headers, privacy, sha256Hex)
  identity.readBody(body)
  return identity
}

const shown = (headers: RequestHeaders, body?: unknown) => identityOf(headers, body).shown

describe("the app of a request", () => {
  const programs: ReadonlyArray<readonly [agent: string, app: App]> = [
    ["claude-cli/2.1.330 (external, cli)", "claude-code"],
    ["claude-code/2.1.330", "claude-code"],
    ["codex_cli_rs/0.169.0 (Debian 12; x86_64) xterm", "codex"],
    ["opencode/1.2.3", "opencode"],
    ["pi/0.1", "pi"],
    ["GeminiCLI/0.9.0/gemini-3-pro (linux; x64)", "gemini-cli"],
    ["QwenCode/0.1 (linux; x64)", "qwen-code"],
    ["Cline/3.1", "cline"],
    ["RooCode/3.30", "roo-code"],
    ["Kilo-Code/4.0", "kilo-code"],
    ["OpenAI/JS 7.55.0", "sdk"],
    ["AsyncOpenAI/Python 2.1", "sdk"],
    ["Anthropic/JS 0.70.0", "sdk"],
    ["google-genai-sdk/1.30.0 gl-node/v24", "sdk"],
    ["curl/8.5.0", "curl"],
    ["Mozilla/5.0", "other"],
    ["", "other"]
  ]
  it.each(programs)("%s is %s", (agent, app) => {
    assert.deepStrictEqual(shown({ "user-agent": agent }), { app })
  })

  it("is known by its originator or its own headers where its agent names a library", () => {
    assert.strictEqual(identityOf({ "user-agent": "node", originator: "codex_exec" }).app, "codex")
    assert.strictEqual(identityOf({ "user-agent": "OpenAI/JS 7", "x-openwebui-chat-id": "c" }).app, "open-webui")
    assert.strictEqual(identityOf({ "x-amp-thread-id": "t" }).app, "amp")
    assert.strictEqual(identityOf({}).app, "other")
  })
})

const claude = { "user-agent": "claude-cli/2.1" }
const codex = { "user-agent": "codex_exec/0.169" }

describe("the session of a request", () => {
  const rows: ReadonlyArray<readonly [about: string, headers: RequestHeaders, body: unknown, expected: object]> = [
    ["any client", { "x-gateway-session": "s", "x-gateway-agent": "a" }, {}, { session: "s", agent: "a" }],
    [
      "Claude Code",
      {
        ...claude,
        "x-claude-code-session-id": "s",
        "x-claude-code-agent-id": "a",
        "x-claude-code-parent-agent-id": "p"
      },
      {},
      { session: "s", agent: "a", parent: "p" }
    ],
    ["Claude Code without the header", claude, { metadata: { user_id: JSON.stringify({ session_id: "s" }) } }, {
      session: "s"
    }],
    ["an older Claude Code", claude, { metadata: { user_id: "user_1_account__session_0a-1" } }, { session: "0a-1" }],
    ["codex", { ...codex, "session-id": "s", "thread-id": "s" }, { prompt_cache_key: "k" }, { session: "s" }],
    [
      "an agent of codex",
      { ...codex, "session-id": "s", "thread-id": "t", "x-codex-parent-thread-id": "p" },
      {},
      { session: "s", agent: "t", parent: "p" }
    ],
    ["an older codex", { ...codex, session_id: "s" }, {}, { session: "s" }],
    ["codex without the header", codex, { prompt_cache_key: "k" }, { session: "k" }],
    ["another client with a key of a cache", {}, { prompt_cache_key: "k" }, {}],
    ["opencode", { "x-session-id": "s", "x-session-affinity": "f" }, {}, { session: "s" }],
    ["an agent of opencode", { "x-parent-session-id": "p", "x-session-id": "s" }, {}, { session: "p", agent: "s" }],
    ["pi", { "x-session-affinity": "f" }, {}, { session: "f" }],
    ["Cline", { "x-task-id": "t" }, {}, { session: "t" }],
    ["Cline of another version", { "x-cline-task-id": "t" }, {}, { session: "t" }],
    ["Roo Code", { "x-roo-task-id": "t" }, {}, { session: "t" }],
    ["Kilo Code", { "x-kilocode-taskid": "t" }, {}, { session: "t" }],
    ["Amp", { "x-amp-thread-id": "t" }, {}, { session: "t" }],
    ["Open WebUI", { "x-openwebui-chat-id": "c" }, {}, { session: "c" }],
    ["a field of the body", {}, { session_id: "b" }, { session: "b" }],
    ["the gateway's header beside all others", { "x-gateway-session": "s", "session-id": "o" }, { session_id: "b" }, {
      session: "s"
    }],
    ["the user's id before a header of another client", { "session-id": "o" }, {
      metadata: { user_id: "{\"session_id\":\"s\"}" }
    }, {
      session: "s"
    }],
    ["an id that is new for each request", { ...claude, "x-client-request-id": "r" }, {}, {}]
  ]
  it.each(rows)("of %s", (_, headers, body, expected) => {
    const { app: _app, ...named } = shown(headers, body)
    assert.deepStrictEqual<object>(named, expected)
  })

  it("is a hash of any other value, and every value is bounded", () => {
    const value = fc.oneof(
      fc.string({ maxLength: 300 }),
      fc.string({ unit: "grapheme-ascii", minLength: 100, maxLength: 2_000 })
    )
    const body = fc.oneof(
      fc.record({ session_id: fc.oneof(value, fc.integer(), fc.object()) }),
      fc.record({ metadata: fc.oneof(fc.object(), fc.record({ user_id: fc.oneof(value, fc.json()) })) }),
      fc.anything()
    )
    fc.assert(fc.property(fc.constantFrom(...identityHeaders), value, body, (name, value, body) => {
      const { agent, parent, session } = identityOf({ ...codex, [name]: value }, body)
      for (const named of [agent, parent, session]) {
        if (named !== undefined) assert.match(named, /^[\x21-\x7e]{1,128}$/)
      }
    }))
    assert.match(identityOf({ "x-gateway-session": "two words" }).session ?? "", /^[\da-f]{32}$/)
  })

  it("is kept as privacy.sessions says, and steers the same", () => {
    const headers = { "x-gateway-session": "s", "x-gateway-agent": "a" }
    const [hashed, none] = [identityOf(headers, {}, "hash"), identityOf(headers, {}, "none")]
    assert.deepStrictEqual([hashed.session, none.session, none.agent], ["s", "s", "a"])
    assert.deepStrictEqual(none.shown, { app: "other" })
    assert.match(hashed.shown.session ?? "", /^[\da-f]{16}$/)
    assert.notInclude(Object.values(hashed.shown), "a")
  })
})
