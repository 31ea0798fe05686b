/** Credentials of accounts in the configuration: which are accepted, and what identifies their accounts. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, type Schema } from "effect"
import * as Redacted from "effect/Redacted"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import type { RawConfig } from "../../src/config/json.ts"
import { CurrentVariables } from "../../src/config/references.ts"

const variables: Readonly<Record<string, string>> = { SECRET: "of the environment" }

const decode = (accounts: ReadonlyArray<Schema.Json>, driver = "openai") => {
  const raw: RawConfig = { upstream: { driver, base_url: "http://127.0.0.1:9/v1" }, accounts }
  return Effect.map(
    Effect.provideService(decodeConfig(raw, { duplicates: "refuse" }), CurrentVariables, (name) => variables[name]),
    ({ snapshot }) => snapshot.config.accounts
  )
}

const faults = (accounts: ReadonlyArray<Schema.Json>, driver?: string) =>
  Effect.map(Effect.flip(decode(accounts, driver)), (error) => error.faults.map(({ message }) => message))

const file = { from: "file", path: "/run/token" }
const command = { from: "command", run: ["/bin/token", "canary"] }
const aws = { from: "aws", key: "canary", secret: "canary" }
const entra = { from: "entra", tenant: "t", client: "c", secret: "canary" }

describe("the credential of an account", () => {
  it.effect.each<readonly [Schema.Json, string]>([
    ["token", "must be an object whose from is one of file, command, google, entra, aws"],
    [{ from: "text" }, "must be an object whose from is one of file, command, google, entra, aws"],
    [{ from: "file" }, "path is required"],
    [{ ...file, path: " " }, "path must not be empty"],
    [{ ...command, run: "token --aud canary" }, "run must be a list of a program and its arguments"],
    [{ ...command, run: [] }, "run must have 1 to 64 entries"],
    [{ ...command, for: 0 }, "for must be between 1 and 31536000"],
    [{ ...command, timeout: 26 }, "timeout must be between 1 and 25"],
    [{ ...command, run: ["***"] }, "run[0] must be written with its secret"],
    [{ ...entra, secret: "***" }, "secret must be written with its secret"],
    [{ ...entra, secret: "${ABSENT}" }, "secret refers to the environment variable ABSENT, which is not set"],
    [{ from: "entra", secret: "canary" }, "must have a tenant beside secret, certificate_file or federated_file"],
    [
      { from: "entra", tenant: "t", client: "c" },
      "must have a client and one of secret, certificate_file and federated_file beside tenant"
    ],
    [
      { ...entra, federated_file: "/f" },
      "must have a client and one of secret, certificate_file and federated_file beside tenant"
    ],
    [{ ...entra, authority: "http://login.example" }, "authority must be an https address without a path"],
    [{ from: "aws", key: "canary" }, "must have key and secret together"],
    [{ from: "aws", key: "***", secret: "s" }, "key must be written with its secret"],
    [{ ...aws, profile: "p" }, "must have one of key, profile and web_identity_file"],
    [{ from: "aws", web_identity_file: "/f" }, "must have a role beside web_identity_file, session or external_id"],
    [{ ...aws, role: "gateway" }, "role must be the ARN of a role"],
    [
      { ...aws, role: "arn:aws:iam::1:role/r", session: "a b" },
      "session must have 2 to 64 characters of a-z, A-Z, 0-9 and _+=,.@-"
    ],
    [{ ...aws, region: "x.evil.example" }, "region must be the name of a region, such as eu-central-1"],
    [{ ...aws, sts: "http://sts.example" }, "sts must be an https address without a path"]
  ])("is refused where it is %j", ([credential, rule]) =>
    Effect.gen(function*() {
      const [fault, ...others] = yield* faults([{ credential }])
      assert.deepStrictEqual(others, [])
      assert.oneOf(fault, [`accounts[0].credential.${rule}`, `accounts[0].credential ${rule}`])
      assert.notInclude(fault, "canary")
    }))

  it.effect("stands in place of a token and of a login", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(
        yield* faults([{ credential: file, token: "t", email: "a@x.org", password: "p" }]),
        ["email", "password", "token"].map((name) => `accounts[0].${name} must be unset beside a credential`)
      )
      assert.deepStrictEqual(
        yield* faults([{ credential: file }], "session"),
        ["accounts[0].credential must be unset with the session driver"]
      )
    }))

  it.effect("has the values of variables, and identifies the account as it is written", () =>
    Effect.gen(function*() {
      const [account] = yield* decode([{ credential: { ...entra, secret: "${SECRET}" } }])
      assert.strictEqual(Reflect.get(Redacted.value(account!.credential!.entry), "secret"), "of the environment")
      assert.notInclude(JSON.stringify(account), "of the environment")
      const [other] = yield* decode([{ credential: entra }])
      assert.strictEqual(account!.identifier, other!.identifier)
      assert.match(account!.identifier, /^entra:[0-9a-f]{16}$/)
    }))

  it.effect("tells accounts apart, and finds one that is listed twice", () =>
    Effect.gen(function*() {
      const credentials = [file, { ...file, path: "/other" }, command, { from: "google" }, entra, {
        ...entra,
        client: "d"
      }]
      const accounts = yield* decode(credentials.map((credential) => ({ credential })))
      assert.strictEqual(new Set(accounts.map(({ identifier }) => identifier)).size, credentials.length)
      assert.deepStrictEqual(
        yield* faults([{ credential: command }, { credential: { ...command, for: 60 } }]),
        ["accounts[1] is the same account as accounts[0]"]
      )
    }))
})
