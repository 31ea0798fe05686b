import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { spawn } from "node:child_process"
import type { ReferenceOptions } from "../../src/testing/Provider.ts"
import { layer, make, Reference } from "../../src/testing/Reference.ts"
import { ask, completeIn, createSession, envelopeOf, eventsOf, type Exchange, goOn, promptOf, send } from "./client.ts"

const setUp = (options?: ReferenceOptions) =>
  Effect.gen(function*() {
    const reference = yield* make(options)
    return { reference, url: yield* reference.listen() }
  })

const text = (exchange: Exchange): string => exchange.body.toString()

const logIn = (url: string, login: Readonly<Record<string, string>>) =>
  Effect.map(
    send(url, "/api/v0/users/login", { body: { device_id: "d", os: "web", ...login } }),
    envelopeOf
  )

const current = (url: string, token?: string) =>
  Effect.map(
    send(url, "/api/v0/users/current", { method: "GET", ...(token === undefined ? {} : { token }) }),
    (exchange) => ({ code: envelopeOf(exchange).code, status: exchange.status })
  )

const stop = (url: string, session: string, message = 2) =>
  send(url, "/api/v0/chat/stop_stream", { token: "t", body: { chat_session_id: session, message_id: message } })

describe("who may call", () => {
  it.live("anybody, where nothing is configured", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp()
      const { data } = yield* logIn(url, { email: "a@example.org", password: "p" })
      assert.strictEqual((yield* current(url, data.biz_data.user.token)).code, 0)
      assert.strictEqual((yield* current(url, "anything")).code, 0)
      assert.strictEqual((yield* current(url)).code, 40001)
    }))

  it.live("the known accounts with their passwords, unless they are suspended", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp({
        accounts: [
          { email: "a@example.org", password: "p" },
          { mobile: "13800138000", password: "q" },
          { email: "s@example.org", password: "p", suspended: true }
        ]
      })
      assert.strictEqual((yield* logIn(url, { email: "a@example.org", password: "p" })).data.biz_code, 0)
      assert.strictEqual((yield* logIn(url, { mobile: "13800138000", password: "q" })).data.biz_code, 0)
      assert.strictEqual((yield* logIn(url, { email: "a@example.org", password: "x" })).data.biz_code, 2)
      assert.strictEqual((yield* logIn(url, { email: "b@example.org", password: "p" })).data.biz_code, 2)
      assert.strictEqual((yield* logIn(url, { email: "s@example.org", password: "p" })).data.biz_code, 5)
      assert.strictEqual((yield* current(url, "forged")).code, 40002)
      const { logins, refusedLogins } = yield* reference.report
      assert.deepStrictEqual(logins, { "a@example.org": 1, "13800138000": 1 })
      assert.strictEqual(refusedLogins, 3)
    }))

  it.live("and counts what no caller who keeps to the protocol sends", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp()
      const session = yield* createSession(url)
      yield* completeIn(url, session, "!say one")
      yield* goOn(url, "no-such-session")
      assert.strictEqual((yield* reference.report).violations, 0)
      yield* send(url, "/api/v0/no/such/call", { token: "t" })
      yield* send(url, "/api/v0/chat/completion", { token: "t", body: { chat_session_id: session } })
      yield* completeIn(url, session, "!say two", { parent: 77 })
      yield* goOn(url, session, 77)
      yield* current(url)
      const { latestViolations, violations } = yield* reference.report
      assert.strictEqual(violations, 5)
      const whats = [
        /^POST \/api\/v0\/no\/such\/call$/,
        /of another form/,
        /of an unknown message/,
        /of an unknown message/,
        /without a token/
      ]
      for (const [i, what] of whats.entries()) assert.match(latestViolations[i] ?? "", what)
      yield* reference.forget
      assert.strictEqual((yield* reference.report).violations, 0)
    }))

  it.live("callers with a revoked token or a suspended account may not", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp({ refusedTokenStatus: 401 })
      const first = (yield* logIn(url, { email: "a", password: "p" })).data.biz_data.user.token
      yield* reference.revoke("a")
      assert.deepStrictEqual(yield* current(url, first), { code: 40003, status: 401 })
      const second = (yield* logIn(url, { email: "a", password: "p" })).data.biz_data.user.token
      assert.strictEqual((yield* current(url, second)).code, 0)
      yield* reference.suspend("a", true)
      assert.strictEqual((yield* current(url, second)).code, 40003)
      assert.strictEqual((yield* logIn(url, { email: "a", password: "p" })).data.biz_code, 5)
      yield* reference.suspend("a", false)
      assert.strictEqual((yield* current(url, second)).code, 0)
      yield* reference.revoke("bare")
      assert.strictEqual((yield* current(url, "bare")).code, 40003)
      yield* reference.revoke()
      assert.strictEqual((yield* current(url, second)).code, 40003)
    }))

  it.effect("callers with an expired token may not", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp({ tokenLifetime: 60_000 })
      const { token } = (yield* logIn(url, { email: "a", password: "p" })).data.biz_data.user
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual((yield* current(url, token)).code, 0)
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* current(url, token)).code, 40003)
    }))

  it.live("no more than so many completions of an account concurrently, and no prompt that is too long", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp({ maxRunning: 1, maxPrompt: 100 })
      const controller = new AbortController()
      const running = yield* ask(url, "!say a\n!fault hang-mid-stream", { signal: controller.signal })
        .pipe(Effect.forkChild)
      yield* reference.until(({ streams }) => streams === 1)
      assert.strictEqual(envelopeOf(yield* ask(url, "!say b")).data.biz_code, 6)
      assert.include(text(yield* ask(url, "!say b", { token: "other" })), "FINISHED")
      controller.abort()
      yield* Fiber.join(running)
      yield* reference.until(({ streams }) => streams === 0)
      assert.include(text(yield* ask(url, "!say b")), "FINISHED")
      assert.strictEqual(envelopeOf(yield* ask(url, "x".repeat(100))).data.biz_code, 9)
    }))

  it.live("only with requests that have the form of the page", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp()
      const session = yield* createSession(url)
      const bad = [
        send(url, "/api/v0/chat/completion", { token: "t", body: { chat_session_id: session, prompt: "hi" } }),
        send(url, "/api/v0/chat_session/create", { token: "t" }),
        send(url, "/api/v0/users/login", { body: { email: "a", mobile: "1", password: "p", device_id: "d", os: "o" } })
      ]
      for (const request of bad) assert.strictEqual((yield* request).status, 400)
      assert.strictEqual((yield* send(url, "/api/v0/nothing", { token: "t" })).status, 404)
      assert.strictEqual(envelopeOf(yield* completeIn(url, "unknown", "hi")).data.biz_code, 3)
      assert.strictEqual(envelopeOf(yield* completeIn(url, session, "hi", { token: "other" })).data.biz_code, 3)
      assert.strictEqual(envelopeOf(yield* completeIn(url, session, "hi", { parent: 8 })).data.biz_code, 4)
      assert.strictEqual(envelopeOf(yield* goOn(url, session, 8)).data.biz_code, 4)
    }))
})

describe("sessions", () => {
  it.live("are listed, the latest first, and deleted", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp()
      const list = (count: number) =>
        Effect.map(
          send(url, `/api/v0/chat_session/fetch_page?count=${count}`, { method: "GET", token: "t" }),
          (exchange): { chat_sessions: ReadonlyArray<{ id: string; title: string }>; has_more: boolean } =>
            JSON.parse(text(exchange)).data.biz_data
        )
      const first = yield* createSession(url)
      yield* createSession(url)
      yield* completeIn(url, first, "What is this about?")
      assert.strictEqual((yield* list(5)).chat_sessions.find(({ id }) => id === first)?.title, "What is this about?")
      assert.isTrue((yield* list(1)).has_more)
      yield* send(url, "/api/v0/chat_session/delete", { token: "t", body: { chat_session_id: first } })
      assert.lengthOf((yield* list(5)).chat_sessions, 1)
      yield* createSession(url, "other")
      yield* send(url, "/api/v0/chat_session/delete_all", { token: "t", body: {} })
      assert.deepStrictEqual(yield* list(5), { chat_sessions: [], has_more: false })
      assert.deepStrictEqual((yield* reference.report).sessions, { created: 3, deleted: 2, open: 1 })
    }))

  it.live("remember their turns, each going on from the reply that it names", () =>
    Effect.gen(function*() {
      const { url } = yield* setUp()
      const session = yield* createSession(url)
      yield* completeIn(url, session, "First")
      const second = yield* completeIn(url, session, "!chunk whole\nSecond", { parent: 2 })
      assert.deepStrictEqual(JSON.parse(eventsOf(second)[0]!.data), { request_message_id: 3, response_message_id: 4 })
      assert.include(text(second), "This is turn 2")
      const apart = yield* completeIn(url, session, "!chunk whole\nThird")
      assert.notInclude(text(apart), "This is turn")
    }))

  it.live("are no more than so many: the oldest go first", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp({ maxSessions: 2 })
      const oldest = yield* createSession(url)
      yield* createSession(url)
      const latest = yield* createSession(url)
      assert.strictEqual(envelopeOf(yield* completeIn(url, oldest, "hi")).data.biz_code, 3)
      assert.include(text(yield* completeIn(url, latest, "hi")), "FINISHED")
      assert.strictEqual((yield* reference.report).sessions.open, 2)
    }))
})

describe("the memory of sessions", () => {
  it.live("is bounded, and never at the cost of a reply that runs or a session that has not begun", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp({ maxCharacters: 2000 })
      const fresh = yield* createSession(url)
      const held = yield* createSession(url)
      const running = yield* completeIn(url, held, "!say a\n!fault hang-mid-stream").pipe(Effect.forkChild)
      yield* reference.until(({ streams }) => streams === 1)
      const idle = yield* createSession(url)
      yield* completeIn(url, idle, "!say a")
      yield* ask(url, `!say a\n${"x".repeat(3000)}`)
      assert.strictEqual(envelopeOf(yield* stop(url, idle)).data.biz_code, 3)
      assert.strictEqual(envelopeOf(yield* stop(url, fresh)).data.biz_code, 0)
      assert.strictEqual(envelopeOf(yield* stop(url, held)).data.biz_code, 0)
      yield* Fiber.join(running)
    }))
})

describe("what hangs", () => {
  it.live("ends where it is cut, and the continued stream has the rest", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp()
      const script = (word: string) => `!say ["${word}"," more"]\n!fault hang-mid-stream after=1`
      const session = yield* createSession(url)
      const hanging = yield* Effect.forkChild(completeIn(url, session, script("this")))
      const other = yield* Effect.forkChild(ask(url, script("that")))
      yield* reference.until(({ silences, streams }) => silences === 2 && streams === 2)
      yield* reference.cut("this")
      const exchange = yield* Fiber.join(hanging)
      assert.include(text(exchange), "this")
      assert.notInclude(text(exchange), "FINISHED")
      assert.strictEqual((yield* reference.report).streams, 1)
      assert.include(text(yield* goOn(url, session)), "FINISHED")
      yield* reference.cut()
      assert.notInclude(text(yield* Fiber.join(other)), "FINISHED")
      assert.deepInclude(yield* reference.until(({ open }) => open === 0), { streams: 0, stopped: 2, aborted: 0 })
    }))
})

describe("the report", () => {
  it.live("counts requests, and streams that ran concurrently", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp()
      const controllers = [new AbortController(), new AbortController()]
      const hanging = yield* Effect.forEach(controllers, ({ signal }) =>
        ask(url, "!say [\"a\"]\n!fault hang-mid-stream", { token: "one", signal }).pipe(Effect.forkChild))
      yield* ask(url, "!say b", { token: "two" })
      const during = yield* reference.until(({ open, streams }) =>
        open === 2 && streams === 2
      )
      assert.deepStrictEqual(during.mostAtOnce, { one: 2, two: 1 })
      assert.include(during.prompts, promptOf("!say b"))
      assert.deepInclude(during.calls, { create: 3, completion: 3, continue: 0 })
      for (const controller of controllers) controller.abort()
      yield* Effect.forEach(hanging, Fiber.join)
      const after = yield* reference.until(({ open }) => open === 0)
      assert.strictEqual(after.aborted, 2)
      assert.strictEqual(after.streams, 0)
      const seen = after.requests.find(({ account, call }) => call === "completion" && account === "two")
      assert.deepInclude(seen, { outcome: "finished", prompt: promptOf("!say b"), faults: [] })
      assert.strictEqual(JSON.parse(seen?.body ?? "").prompt, promptOf("!say b"))
      yield* reference.forget
      assert.deepInclude(yield* reference.report, { aborted: 0, prompts: [], requests: [], mostAtOnce: {} })
    }))

  it.live("shows no more than the latest requests", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp({ remember: 3 })
      for (const name of ["a", "b", "c", "d"]) yield* createSession(url, name)
      const { calls, requests } = yield* reference.report
      assert.deepStrictEqual(requests.map(({ account }) => account), ["b", "c", "d"])
      assert.strictEqual(calls.create, 4)
    }))

  it.live("knows a stream that was stopped, which ends immediately and keeps what it said", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp()
      const session = yield* createSession(url)
      const running = yield* completeIn(url, session, "!say [\"a\"]\n!fault hang-mid-stream").pipe(Effect.forkChild)
      yield* reference.until(({ streams }) => streams === 1)
      assert.strictEqual(envelopeOf(yield* stop(url, session)).data.biz_code, 0)
      const exchange = yield* Fiber.join(running)
      assert.strictEqual(exchange.ended, "whole")
      assert.include(text(exchange), "\"a\"")
      const report = yield* reference.until(({ open }) => open === 0)
      assert.deepInclude(report, { stopped: 1, aborted: 0, streams: 0 })
      assert.strictEqual(report.calls.stop_stream, 1)
      assert.include(text(yield* goOn(url, session)), "\"content\":\"a\"")
    }))
})

describe("ordered replies", () => {
  it.live("are scripts, for the ordered accounts and as often as ordered", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp()
      yield* reference.reply({ script: "!chunk whole\n!say from the test", account: "a", times: 2 })
      const answers = yield* Effect.forEach(["b", "a", "a", "a"], (token) =>
        Effect.map(ask(url, "Hello", { token }), (exchange) => text(exchange).includes("from the test")))
      assert.deepStrictEqual(answers, [false, true, true, false])
    }))

  it.live("are recorded streams, byte for byte, in chunks of any size", () =>
    Effect.gen(function*() {
      const { reference, url } = yield* setUp()
      const recorded = (yield* ask(url, "!think Hm\n!say Grüße 🌍\n!fault crlf", { thinking: true })).body
      for (const chunk of [undefined, 1, 7, 4096]) {
        yield* reference.reply({ raw: recorded, ...(chunk === undefined ? {} : { chunk }) })
        const replayed = yield* ask(url, "Hello")
        assert.isTrue(replayed.body.equals(recorded))
        assert.match(String(replayed.headers["content-type"]), /^text\/event-stream/)
      }
      yield* reference.reply({ raw: "data: not even JSON", call: "continue" })
      const session = yield* createSession(url)
      yield* completeIn(url, session, "!say a")
      assert.strictEqual(text(yield* goOn(url, session)), "data: not even JSON")
    }))
})

describe("the in-process client", () => {
  const post = (path: string, body: unknown) =>
    HttpClientRequest.post(`http://anywhere${path}`).pipe(
      HttpClientRequest.bearerToken("t"),
      HttpClientRequest.bodyJsonUnsafe(body)
    )

  const completion = (session: string, script: string) =>
    post("/api/v0/chat/completion", {
      chat_session_id: session,
      parent_message_id: null,
      prompt: promptOf(script),
      ref_file_ids: [],
      thinking_enabled: false,
      search_enabled: false
    })

  const open = (reference: Reference["Service"], script: string) =>
    Effect.gen(function*() {
      const created = yield* reference.client.execute(post("/api/v0/chat_session/create", { agent: "chat" }))
      const { data }: { data: { biz_data: { id: string } } } = JSON.parse(yield* created.text)
      return yield* HttpClient.withScope(reference.client).execute(completion(data.biz_data.id, script))
    })

  it.effect("answers what the socket answers", () =>
    Effect.gen(function*() {
      const reference = yield* Reference
      const url = yield* reference.listen()
      for (const script of ["!think a\n!say b c", "Hello", "!fault busy", "!fault html", "!fault crlf"]) {
        const overSocket = yield* ask(url, script)
        const response = yield* open(reference, script)
        assert.strictEqual(response.status, overSocket.status)
        assert.strictEqual(response.headers["content-type"], overSocket.headers["content-type"])
        assert.strictEqual(yield* response.text, text(overSocket))
      }
    }).pipe(Effect.provide(layer())))

  it.effect("breaks and falls silent as the socket does, and notes a reader that leaves", () =>
    Effect.gen(function*() {
      const reference = yield* Reference
      const before = yield* Effect.flip(open(reference, "!fault reset-before-headers"))
      assert.strictEqual(before._tag, "HttpClientError")
      const broken = yield* open(reference, "!say [\"a\",\"b\"]\n!fault reset-mid-stream after=1")
      const seen: Array<string> = []
      yield* broken.stream.pipe(
        Stream.decodeText,
        Stream.runForEach((chunk) => Effect.sync(() => seen.push(chunk))),
        Effect.flip
      )
      assert.include(seen.join(""), "\"a\"")
      const started = yield* Deferred.make<void>()
      const silent = yield* Effect.scoped(Effect.flatMap(
        open(reference, "!say [\"a\"]\n!fault hang-mid-stream"),
        ({ stream }) => Stream.runForEach(stream, () => Deferred.succeed(started, undefined))
      )).pipe(Effect.forkChild)
      yield* Deferred.await(started)
      assert.strictEqual((yield* reference.report).streams, 1)
      yield* Fiber.interrupt(silent)
      // Whoever never reads a reply leaves with its scope.
      yield* Effect.scoped(open(reference, "!say unread"))
      assert.deepInclude(yield* reference.report, { open: 0, streams: 0, broken: 2, aborted: 2 })
    }).pipe(Effect.provide(layer())))
})

describe("the command", () => {
  it.live("prints where it listens, and is controlled over HTTP", () =>
    Effect.gen(function*() {
      const started = yield* Effect.acquireRelease(
        Effect.callback<{ readonly url: string; readonly process: ReturnType<typeof spawn> }>((resume) => {
          const child = spawn(process.execPath, ["src/testing/main.ts", "--port", "0"], {
            stdio: ["ignore", "pipe", "inherit"]
          })
          child.stdout.once("data", (line: Buffer) => {
            const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line.toString())?.[0] ?? ""
            resume(Effect.succeed({ url, process: child }))
          })
        }),
        ({ process }) =>
          Effect.callback<void>((resume) => {
            process.once("exit", (code) => resume(code === 0 ? Effect.void : Effect.die(`it ended with ${code}`)))
            process.kill("SIGTERM")
          })
      )
      const { url } = started
      const control = (path: string, body?: unknown) =>
        send(url, `/control/${path}`, { method: body === undefined ? "GET" : "POST", body })
      const report = (exchange: Exchange): { readonly open: number; readonly calls: Record<string, number> } =>
        JSON.parse(text(exchange))

      assert.strictEqual((yield* control("fail", { name: "busy" })).status, 200)
      assert.strictEqual(envelopeOf(yield* ask(url, "Hello")).data.biz_code, 6)
      assert.strictEqual((yield* control("reply", { script: "!say controlled" })).status, 200)
      assert.include(text(yield* ask(url, "Hello")), "controlled")
      assert.strictEqual((yield* control("suspend", { account: "a", suspended: true })).status, 200)
      assert.strictEqual((yield* logIn(url, { email: "a", password: "p" })).data.biz_code, 5)
      assert.strictEqual((yield* control("revoke", { account: "t" })).status, 200)
      assert.strictEqual((yield* current(url, "t")).code, 40003)
      for (const wrong of [{ name: "nonsense" }, { name: "hint", call: "login" }, { name: "busy", call: "nothing" }]) {
        assert.strictEqual((yield* control("fail", wrong)).status, 400)
      }
      const hanging = yield* Effect.forkChild(ask(url, "!say a\n!fault hang-mid-stream", { token: "u" }))
      yield* control("until?streams=1")
      assert.strictEqual((yield* control("cut", { containing: "something else" })).status, 200)
      assert.strictEqual(report(yield* control("report")).open, 1)
      assert.strictEqual((yield* control("cut", {})).status, 200)
      yield* Fiber.join(hanging)
      assert.strictEqual((yield* control("nothing")).status, 404)
      const seen = report(yield* control("until?open=0"))
      assert.strictEqual(seen.open, 0)
      assert.deepInclude(seen.calls, { completion: 3, login: 1, current: 1 })
      yield* control("forget", {})
      assert.strictEqual(report(yield* control("report")).calls["completion"], 0)
    }))
})
