/** How facts of several sources and targets become one, as properties. */
import { assert, describe, it } from "@effect/vitest"
import * as fc from "fast-check"
import {
  effortLevels,
  factNames,
  factsOfRoute,
  factSources,
  mergeFacts,
  modalities,
  type ModelFacts,
  plainFacts,
  schemaBindings
} from "../../src/domain/modelFacts.ts"

const facts: fc.Arbitrary<ModelFacts> = fc.record({
  context_window: fc.integer({ min: 1, max: 2_000_000 }),
  max_output_tokens: fc.integer({ min: 1, max: 200_000 }),
  input: fc.subarray([...modalities]),
  output: fc.subarray([...modalities]),
  efforts: fc.subarray([...effortLevels]),
  tools: fc.boolean(),
  schemas: fc.constantFrom(...schemaBindings),
  display_name: fc.constantFrom("A", "B"),
  description: fc.constantFrom("a", "b")
}, { requiredKeys: [] })

const sourced = fc.array(fc.tuple(fc.constantFrom(...factSources), fc.option(facts, { nil: undefined })), {
  maxLength: 5
})
const targets = fc.array(facts.map((each) => mergeFacts([["server", each]])), { minLength: 2, maxLength: 5 })

describe("facts of several sources", () => {
  it("are each the first source's that has it, and unknown where none has", () => {
    fc.assert(fc.property(sourced, (sources) => {
      const merged = mergeFacts(sources)
      for (const name of factNames) {
        const first = sources.find(([, facts]) => facts?.[name] !== undefined)
        assert.deepStrictEqual(
          merged[name],
          first === undefined ? undefined : { value: first[1]![name], source: first[0] } as never
        )
      }
    }))
  })
})

describe("the facts of a route", () => {
  it("are unknown where a target does not have them", () => {
    fc.assert(fc.property(targets, (targets) => {
      const route = factsOfRoute(undefined, targets)
      for (const name of factNames) {
        if (targets.some((target) => target[name] === undefined)) assert.isUndefined(route[name])
      }
    }))
  })

  it("are the largest window, the union of the inputs, and what all targets have", () => {
    fc.assert(fc.property(targets, (targets) => {
      const route = plainFacts(factsOfRoute(undefined, targets))
      const all = targets.map(plainFacts)
      if (route.context_window !== undefined) {
        assert.strictEqual(route.context_window, Math.max(...all.map((each) => each.context_window!)))
      }
      if (route.max_output_tokens !== undefined) {
        assert.strictEqual(route.max_output_tokens, Math.min(...all.map((each) => each.max_output_tokens!)))
      }
      if (route.schemas !== undefined) {
        const places = all.map(({ schemas }) => schemaBindings.indexOf(schemas!))
        assert.strictEqual(schemaBindings.indexOf(route.schemas), Math.min(...places))
      }
      for (const modality of route.input === undefined ? [] : modalities) {
        assert.strictEqual(route.input!.includes(modality), all.some(({ input }) => input!.includes(modality)))
      }
      for (const level of route.efforts === undefined ? [] : effortLevels) {
        assert.strictEqual(route.efforts!.includes(level), all.every(({ efforts }) => efforts!.includes(level)))
      }
      for (const modality of route.output === undefined ? [] : modalities) {
        assert.strictEqual(route.output!.includes(modality), all.every(({ output }) => output!.includes(modality)))
      }
      if (route.tools !== undefined) assert.strictEqual(route.tools, all.every(({ tools }) => tools))
      if (route.display_name !== undefined) {
        assert.isTrue(all.every(({ display_name }) => display_name === route.display_name))
      }
    }))
  })

  it("do not depend on the order of the targets", () => {
    fc.assert(fc.property(targets, (targets) => {
      const sorted = (facts: ReturnType<typeof factsOfRoute>) => JSON.stringify(facts, Object.keys(facts).sort())
      assert.strictEqual(
        sorted(factsOfRoute(undefined, targets)),
        sorted(factsOfRoute(undefined, targets.toReversed()))
      )
    }))
  })

  it("come from a single target with their sources, but for the name of the route", () => {
    fc.assert(fc.property(facts, facts, (own, target) => {
      const { display_name } = own
      const words = display_name === undefined ? {} : { display_name }
      assert.deepStrictEqual(
        factsOfRoute(words, [mergeFacts([["known", target]])]),
        mergeFacts([["entry", words], ["known", target]])
      )
    }))
  })
})
