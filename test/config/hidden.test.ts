import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import * as fc from "fast-check"
import { keepHidden, shownAddress, shownAddresses, shownEntry, shownValue } from "../../src/config/hidden.ts"
import { fieldsOf } from "../../src/config/unknownFields.ts"
import { runs } from "../support/effort.ts"

describe("an address as it is shown", () => {
  it.each([
    ["https://host/v1", "https://host/v1"],
    ["http://127.0.0.1:3128", "http://127.0.0.1:3128"],
    ["direct", "direct"],
    ["${PROXY}", "${PROXY}"],
    ["http://user:secret@host:3128", "http://***@host:3128"],
    ["https://user:secret@host/v1/", "https://***@host/v1/"],
    ["http://secret@host", "http://***@host"],
    ["http://user:sec@ret@host/v1", "http://***@host/v1"],
    ["http:\\\\user:secret@host", "http://***@host"],
    ["http:user:secret@host", "http://***@host"],
    ["http:/user:secret@host", "http://***@host"],
    ["ht\ttp://user:secret@host", "http://***@host"],
    [" http://us\ner:secret@host", "http://***@host"],
    ["https://host/v1?api-version=secret&key=secret", "https://host/v1?api-version=***&key=***"],
    ["https://host?secret", "https://host/?***"],
    ["https://host/v1?a=secret=secret&secret", "https://host/v1?a=***&***"],
    ["https://host/v1#secret", "https://host/v1#***"],
    ["socks5://user:secret@host:1080", "socks5://***@host:1080"],
    ["http://${USER}:secret@host:${PORT}", "http://***@host:${PORT}"],
    ["${SCHEME}://user:secret@host", "***"],
    ["redis+sentinel://user:secret@a:1,b:2/main?sentinel_password=secret", "redis+sentinel://***@a:1,b:2/main?***"],
    ["redis://user:se/cret@host:6379", "redis://***@host:6379"],
    ["redis://user:secret?secret@host", "***"]
  ])("of %j is %j", (text, shown) => {
    assert.strictEqual(shownAddress(text), shown)
    assert.strictEqual(shownAddress(shown), shown)
  })

  it("has no secret of any text that an address's reader finds", () => {
    const slashes = fc.constantFrom("://", ":\\\\", ":", ":/", ":/\\", "\t://", ":\n//")
    const part = fc.stringMatching(/^[a-z@:%\\[\]\t ]{0,6}$/)
    const texts = fc.tuple(fc.constantFrom("http", "HTTPS", "ht\ttp", " http"), slashes, part, part, part)
    fc.assert(
      fc.property(texts, ([scheme, slash, before, between, after]) => {
        const text = `${scheme}${slash}${before}S3CR3T${between}@host/${after}?x=S3CR3T#S3CR3T`
        if (!URL.canParse(text)) return
        const { hash, password, search, username } = new URL(text)
        if (!`${username}${password}`.includes("S3CR3T")) return
        assert.include(search + hash, "S3CR3T")
        assert.notInclude(shownAddress(text), "S3CR3T")
        assert.notInclude(shownAddresses(text), "S3CR3T")
      }),
      { numRuns: runs(500) }
    )
  })

  it("is the same within a longer text", () => {
    assert.strictEqual(
      shownAddresses("see http://u:secret@a/ or (https:\\\\u:secret@b) and redis://u:secret@c"),
      "see http://***@a or (https://***@b) and redis://***@c"
    )
    assert.strictEqual(shownAddresses("mail ada@example.com: what now?"), "mail ada@example.com: what now?")
  })
})

describe("an upstream's entry as it is shown", () => {
  const entry = {
    driver: "openai",
    base_url: "https://user:secret@host/v1?key=secret",
    api_key: "secret",
    models: { m: "model", n: { model: "n", api_key: "secret" } },
    headers: { "X-Title": "secret" },
    proxy: "http://user:secret@proxy:1",
    timeouts: { silence: 7, token: ["secret"] },
    tls: { ca: "/etc/ca.pem", key: "-----BEGIN PRIVATE KEY-----secret", password: { of: "secret" } },
    nested: { deep: "secret" },
    fields: ["a"]
  }
  const shown = {
    driver: "openai",
    base_url: "https://***@host/v1?key=***",
    api_key: "***",
    models: { m: "model", n: { model: "n", api_key: "***" } },
    headers: { "X-Title": "***" },
    proxy: "http://***@proxy:1",
    timeouts: { silence: 7, token: "***" },
    tls: { ca: "/etc/ca.pem", key: "***", password: "***" },
    nested: "***",
    fields: ["a"]
  }

  it("hides secrets, and every field that the schema does not know", () => {
    assert.deepStrictEqual(shownEntry(entry), shown)
  })

  it("keeps the secrets when it is sent back", () => {
    assert.deepStrictEqual(keepHidden(entry, shown), entry)
    const changed = { ...shown, base_url: "https://***@host/v2?key=***", timeouts: { silence: 8, token: "***" } }
    assert.deepStrictEqual(keepHidden(entry, changed), {
      ...entry,
      base_url: "https://***@host/v2?key=***",
      timeouts: { silence: 8, token: ["secret"] }
    })
  })

  it("keeps no secret but the proxy's where the address has another origin", () => {
    for (const base_url of ["https://other.example/v1", "http://host/v1", "https://host:8443/v1", null]) {
      assert.deepStrictEqual(keepHidden(entry, { ...shown, base_url }), { ...shown, base_url, proxy: entry.proxy })
    }
    assert.deepStrictEqual(keepHidden(entry, { ...shown, base_url: "https://host/other" }), {
      ...entry,
      base_url: "https://host/other"
    })
  })

  it("hides what the schema calls sensitive, whatever its name and its form", () => {
    const known = fieldsOf([
      Schema.Struct({
        plain: Schema.optionalKey(Schema.String),
        code: Schema.optionalKey(Schema.String.annotate({ sensitive: true })),
        codes: Schema.Record(Schema.String, Schema.String).annotate({ sensitive: true })
      })
    ])
    const value = { plain: "shown", code: "secret", codes: { a: "secret" } }
    assert.deepStrictEqual(
      shownValue(value, known, (each, _, sensitive) => sensitive ? "hidden" : each),
      { plain: "shown", code: "hidden", codes: { a: "***" } }
    )
  })
})
