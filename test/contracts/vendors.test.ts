/** Where the servers of vendors are asked, and the fields that move with that. */
import { assert, describe, it } from "@effect/vitest"
import { addressOfCloud, type CloudName, cloudNames, driversOfCloud } from "../../src/contracts/names.ts"
import { serverFacts } from "../../src/contracts/vendors.ts"

const place = { region: "eu-central-1", project: "p", resource: "res" }

describe("the address of a vendor's server", () => {
  it.each<readonly [CloudName, string, string, string]>([
    ["bedrock", "openai", "eu-central-1", "https://bedrock-mantle.eu-central-1.api.aws/v1"],
    ["bedrock", "messages", "eu-central-1", "https://bedrock-mantle.eu-central-1.api.aws/anthropic"],
    ["bedrock-runtime", "messages", "us-east-1", "https://bedrock-runtime.us-east-1.amazonaws.com"],
    ["bedrock-runtime", "responses", "us-east-1", "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1"],
    [
      "vertex",
      "generate",
      "us-east5",
      "https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/google"
    ],
    [
      "vertex",
      "messages",
      "global",
      "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic"
    ],
    [
      "vertex",
      "messages",
      "eu",
      "https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu/publishers/anthropic"
    ],
    ["azure", "responses", "", "https://res.openai.azure.com/openai/v1"]
  ])("of %s with the driver %s in %s is %s", (vendor, driver, region, url) => {
    const { base, origin } = addressOfCloud(vendor, driver, { ...place, region })!
    assert.strictEqual(origin + base, url)
  })

  it("has facts for each driver that the vendor has, and for no other", () => {
    for (const vendor of cloudNames) {
      for (const driver of driversOfCloud(vendor)) {
        assert.isDefined(serverFacts(vendor, driver, place), `${vendor} ${driver}`)
      }
      assert.isUndefined(serverFacts(vendor, "session", place))
    }
  })
})

describe("a request to a vendor's server", () => {
  const asked = {
    path: "/v1/messages",
    body:
      "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"\\\"model\\\":1\"}],\"max_tokens\":1.50,\"stream\":true}",
    headers: { "anthropic-beta": "a, b", other: "1" }
  }

  it("keeps each character of what it does not change", () => {
    const invoked = serverFacts("bedrock-runtime", "messages", place)!.address!(asked, {
      model: "a:b/c",
      isWhole: false
    })
    assert.strictEqual(invoked.path, "/model/a%3Ab%2Fc/invoke-with-response-stream")
    assert.strictEqual(
      invoked.body,
      "{\"messages\":[{\"role\":\"user\",\"content\":\"\\\"model\\\":1\"}],\"max_tokens\":1.50," +
        "\"anthropic_version\":\"bedrock-2023-05-31\",\"anthropic_beta\":[\"a\",\"b\"]}"
    )
    assert.deepStrictEqual(invoked.headers, { other: "1", accept: "application/vnd.amazon.eventstream" })
    const predicted = serverFacts("vertex", "messages", place)!.address!(asked, { model: "claude@1", isWhole: true })
    assert.strictEqual(predicted.path, "/models/claude@1:rawPredict")
    assert.include(predicted.body, "\"max_tokens\":1.50,\"stream\":true,\"anthropic_version\":\"vertex-2023-10-16\"")
  })

  it("counts tokens where the vendor counts them", () => {
    const count = serverFacts("vertex", "messages", place)!.count!(asked)
    assert.deepStrictEqual([count.path, JSON.parse(count.body).model], ["/models/count-tokens:rawPredict", "m"])
    const body = "{\"generateContentRequest\":{\"model\":\"models/g\",\"contents\":[]}}"
    const gemini = serverFacts("vertex", "generate", place)!.count!({
      path: "/models/g:countTokens",
      body,
      headers: {}
    })
    assert.deepStrictEqual([gemini.path, gemini.body], ["/models/g:countTokens", "{\"contents\":[]}"])
  })
})
