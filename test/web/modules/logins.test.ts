/** Tokens of logins among added accounts, of which the console says whose they are. */
import { assert, describe, it } from "@effect/vitest"
import { hasLogin } from "../../../src/web/pages/accounts/parseAccounts.ts"

describe("a token of a login among added accounts", () => {
  it.each([
    ["sk-ant-oat01-abc", true],
    ["# note\nBearer eyJhbGciOi.eyJzdWIi.c2ln", true],
    ["{\"token\":\"sk-ant-oat01-abc\"}", true],
    ["sk-ant-api03-abc", false],
    ["ada@example.com  eyJ", false],
    ["my-sk-ant-oat", false]
  ])("is found by its form: %s", (text, found) => assert.strictEqual(hasLogin(text), found))
})
