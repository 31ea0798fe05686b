import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { decodeConfig } from "../../src/config/decodeConfig.ts"
import { KnownSecrets } from "../../src/domain/hideSecrets.ts"
import { secretsOfUpstream } from "../../src/upstream/serverSecrets.ts"

describe("the secrets of an upstream", () => {
  it.effect("are hidden in a text, and those of others are not", () =>
    Effect.gen(function*() {
      const { snapshot: { config } } = yield* decodeConfig({
        upstreams: {
          one: {
            driver: "messages",
            base_url: "http://models.inside:8080/v1?tenant=hidden-tenant",
            models: { m: "m" },
            headers: { "x-portal": "Bearer portal-secret" },
            proxy: "http://user:proxy%20word@proxy.inside:3128"
          },
          two: { driver: "session", base_url: "http://gpu:8000" }
        },
        accounts: [
          { upstream: "one", token: "Bearer token-of-one", proxy: "http://user:account-word@proxy.inside:3128" },
          { upstream: "one", token: "disabled-token", disabled: true },
          { upstream: "two", email: "Person@Mail.example", password: "word-of-two" },
          { upstream: "two", mobile: "+8613800000000", password: "12345678" }
        ]
      }, { duplicates: "refuse" })
      const hiddenIn = (upstream: string, texts: ReadonlyArray<string>) =>
        texts.map((text) => secretsOfUpstream(config, upstream).hide(`<${text}>`) === "<[hidden]>")
      const ofOne = [
        "http://models.inside:8080",
        "models.inside:8080",
        "models.inside",
        "hidden-tenant",
        "portal-secret",
        "Bearer portal-secret",
        "token-of-one",
        "disabled-token",
        "proxy word",
        "account-word"
      ]
      const ofTwo = [
        "http://gpu:8000",
        "gpu:8000",
        "Person@Mail.example",
        "person@mail.example",
        "word-of-two",
        "13800000000"
      ]
      assert.deepStrictEqual(hiddenIn("one", ofOne), ofOne.map(() => true))
      assert.deepStrictEqual(hiddenIn("two", ofTwo), ofTwo.map(() => true))
      assert.deepStrictEqual(hiddenIn("one", ofTwo), ofTwo.map(() => false))
      // A host of one word may be a word.
      assert.strictEqual(secretsOfUpstream(config, "two").hide("a gpu of another"), "a gpu of another")
      assert.strictEqual(secretsOfUpstream(config, "two"), secretsOfUpstream(config, "two"))
    }))

  it("are found wherever they stand, the longest first, and words of up to four characters stay", () => {
    const secrets = new KnownSecrets(["secret", "secret-and-more", "etsec", "four"])
    assert.strictEqual(secrets.hide("secretsecret-and-moresecret"), "[hidden][hidden][hidden]")
    assert.strictEqual(secrets.hide("xsecretsecx four etsec"), "x[hidden]secx four [hidden]")
    assert.strictEqual(secrets.hide("secre"), "secre")
    assert.strictEqual(secrets.hide(""), "")
  })
})
