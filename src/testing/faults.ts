/**
 * What each named fault does, behind one function for each place at which faults act.
 */
import { answers, carriers } from "./answerFaults.ts"
import type { Draft } from "./Draft.ts"
import type { CallName } from "./envelope.ts"
import { answerFaults, carrierFaults, type Fault, type FaultName, replyFaults, streamFaults } from "./Fault.ts"
import type { Reply } from "./Reply.ts"
import { replies } from "./replyFaults.ts"
import type { Step } from "./Step.ts"
import { streams } from "./streamFaults.ts"

const has = <A extends string>(names: ReadonlyArray<A>, name: string): name is A => names.some((each) => each === name)

/** The answer that a fault gives in place of the call; `undefined` where it lets the call happen. */
export const answerWith = (fault: Fault): ReadonlyArray<Step> | undefined =>
  has(answerFaults, fault.name) ? answers[fault.name].steps(fault) : undefined

/** Spoils how a reply is carried. */
export const carryWith = (fault: Fault, steps: ReadonlyArray<Step>): ReadonlyArray<Step> =>
  has(carrierFaults, fault.name) ? carriers[fault.name].steps(fault, steps) : steps

/** Changes what is said. */
export const replyWith = (fault: Fault, reply: Reply): Reply =>
  has(replyFaults, fault.name) ? replies[fault.name].change(fault, reply) : reply

/** Changes the events of a stream. */
export const streamWith = (fault: Fault, draft: Draft): Draft =>
  has(streamFaults, fault.name) ? streams[fault.name].change(fault, draft) : draft

const ofContinue = (name: FaultName): boolean =>
  name === "disagree" || name === "nothing-new" || name === "incomplete-nothing"

/** The call that a fault happens to where none is named: `continue` for those of a continued stream. */
export const usualCall = (name: FaultName): CallName => ofContinue(name) ? "continue" : "completion"

/** True where a fault has a meaning for a call: what spoils a reply or a stream needs one. */
export const faultFits = (name: FaultName, call: CallName): boolean =>
  has(answerFaults, name) || has(carrierFaults, name) ||
  (call === "continue" && has(streamFaults, name)) ||
  (call === "completion" && !ofContinue(name))

/** What every fault does, for the reader. */
export const faultTable: ReadonlyArray<{ readonly name: FaultName; readonly about: string }> = [
  ...answerFaults.map((name) => ({ name, about: answers[name].about })),
  ...carrierFaults.map((name) => ({ name, about: carriers[name].about })),
  ...replyFaults.map((name) => ({ name, about: replies[name].about })),
  ...streamFaults.map((name) => ({ name, about: streams[name].about }))
]
