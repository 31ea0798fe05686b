/**
 * Requests of each contract that the golden data has beside those of the matrix: fields of a request over the shortest one, by name.
 */
import { citySchema } from "../../styles/support.ts"
import { pdf, picture } from "../../upstream/matrix/requests.ts"

type Fields = { readonly [field: string]: unknown }

/** Requests by their names. */
export type Requests = { readonly [name: string]: Fields }

const png = "aGk="
const reasoner = { model: "upstream-reasoner" }
const city = { name: "n", schema: citySchema, strict: true }
const args = `{"city":"Oslo"}`

const chatTool = (name: string, more: object = {}) => ({
  type: "function",
  function: { name, description: "W", parameters: citySchema, ...more }
})
const chatUser = (...content: ReadonlyArray<object>) => ({ messages: [{ role: "user", content }] })

const chat: Requests = {
  "turns of every role": {
    messages: [
      { role: "developer", content: "Be brief." },
      { role: "system", content: [{ type: "text", text: "Be kind." }] },
      { role: "user", name: "ann", content: "A" },
      { role: "assistant", content: [{ type: "text", text: "B" }], name: "bot" },
      { role: "developer", content: "Now be long." },
      { role: "user", content: [{ type: "text", text: "C" }, { type: "text", text: "D" }] },
      { role: "assistant", refusal: "No.", content: null },
      { role: "user", content: "E" }
    ]
  },
  "sampling": {
    temperature: 0.3,
    top_p: 0.9,
    top_k: 40,
    min_p: 0.05,
    seed: 7,
    presence_penalty: 0.1,
    frequency_penalty: -0.1,
    repetition_penalty: 1.1,
    logit_bias: { 50256: -100 },
    max_tokens: 50
  },
  "a limit of completion tokens and stop sequences": { max_completion_tokens: 99, stop: ["END", "STOP"] },
  "one stop sequence": { stop: "END" },
  "usage of a stream": { stream: true, stream_options: { include_usage: true, include_obfuscation: false } },
  "an object": { response_format: { type: "json_object" } },
  "a schema": { response_format: { type: "json_schema", json_schema: { ...city, description: "A city" } } },
  "text asked for": { response_format: { type: "text" } },
  "tools, strict and loose": {
    tools: [chatTool("f", { strict: true }), chatTool("g", { strict: false }), chatTool("h")],
    tool_choice: "auto",
    parallel_tool_calls: true
  },
  "a tool that must be called": { tools: [chatTool("f"), chatTool("g")], tool_choice: "required" },
  "the tool that must be called": {
    tools: [chatTool("g"), chatTool("f")],
    tool_choice: { type: "function", function: { name: "f" } },
    parallel_tool_calls: false
  },
  "tools that are allowed": {
    tools: [chatTool("f"), chatTool("g")],
    tool_choice: {
      type: "allowed_tools",
      allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "f" } }] }
    }
  },
  "a custom tool": {
    tools: [{ type: "custom", custom: { name: "f", description: "W" } }]
  },
  "functions of the format before tools": { functions: [{ name: "f", parameters: citySchema }], function_call: "auto" },
  "parallel calls with results and reasoning": {
    ...reasoner,
    tools: [chatTool("f")],
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: "Let me see.",
        reasoning_content: "Hm.",
        tool_calls: [
          {
            id: "c1",
            type: "function",
            function: { name: "f", arguments: args },
            extra_content: { google: { thought_signature: "c2ln" } }
          },
          { id: "c2", type: "function", function: { name: "f", arguments: "{\"city\":\"Rome\"}" } }
        ]
      },
      { role: "tool", tool_call_id: "c1", content: "Rain" },
      { role: "tool", tool_call_id: "c2", content: [{ type: "text", text: "Sun" }, { type: "text", text: "!" }] }
    ]
  },
  "reasoning with its details": {
    ...reasoner,
    messages: [
      { role: "user", content: "Two and two?" },
      {
        role: "assistant",
        content: "Four.",
        reasoning: "Hm.",
        reasoning_details: [
          { type: "reasoning.text", text: "Hm.", signature: "c2ln", format: "anthropic-claude-v1", index: 0 },
          { type: "reasoning.encrypted", data: "ZW5j", id: "rs_1", format: "openai-responses-v1", index: 1 }
        ]
      },
      { role: "user", content: "Sure?" }
    ]
  },
  "the calls of the format before tools": {
    messages: [
      { role: "user", content: "Go" },
      { role: "assistant", content: null, function_call: { name: "f", arguments: args } },
      { role: "function", name: "f", content: "Rain" }
    ]
  },
  "pictures of every form": chatUser(
    { type: "text", text: "Look" },
    { type: "image_url", image_url: { url: picture, detail: "high" } },
    { type: "image_url", image_url: { url: "https://x.test/a.png", detail: "low" } }
  ),
  "files of every form": chatUser(
    { type: "file", file: { file_data: pdf, filename: "a.pdf" } },
    { type: "file", file: { file_data: "data:text/plain;base64,aGk=", filename: "a.txt" } },
    { type: "file", file: { file_id: "file-1" } }
  ),
  "sound": chatUser({ type: "input_audio", input_audio: { data: png, format: "wav" } }),
  "sound and video at addresses": chatUser(
    { type: "audio_url", audio_url: { url: "https://x.test/a.wav" } },
    { type: "video_url", video_url: { url: "https://x.test/a.mp4" } }
  ),
  "parts of unknown kinds": chatUser({ type: "hologram", data: "x", text: "A hologram" }, { type: "text", text: "Hi" }),
  "no effort": { ...reasoner, reasoning_effort: "none" },
  "the least effort": { ...reasoner, reasoning_effort: "minimal" },
  "high effort": { ...reasoner, reasoning_effort: "high" },
  "the highest effort": { ...reasoner, reasoning_effort: "xhigh" },
  "thinking in words of servers": {
    ...reasoner,
    thinking: { type: "enabled" },
    enable_thinking: true,
    chat_template_kwargs: { enable_thinking: false }
  },
  "several choices": { n: 2 },
  "marks of the cache": {
    messages: [
      { role: "system", content: [{ type: "text", text: "Be kind.", cache_control: { type: "ephemeral" } }] },
      { role: "user", content: "Hi", cache_control: { type: "ephemeral" } }
    ],
    prompt_cache_key: "k",
    prompt_cache_retention: "24h"
  },
  "fields within elements": {
    messages: [
      { role: "user", content: [{ type: "text", text: "Hi", mark: 1 }], extra: { a: 1 } },
      { role: "assistant", content: "B", audio: { id: "a" }, annotations: [], prefix: true },
      { role: "user", content: "Go" }
    ],
    tools: [{ ...chatTool("f", { cost: 2 }), cache_control: { type: "ephemeral" } }, {
      type: "web_search",
      web_search: { enable: true }
    }],
    response_format: { type: "json_schema", json_schema: { ...city, dialect: "b" } }
  },
  "long integers": {
    seed: 9_007_199_254_740_991,
    messages: [{ role: "user", content: "Hi", number: 9_007_199_254_740_991 }]
  },
  "no messages": { messages: [] },
  "a wrong temperature": { temperature: 3 },
  "a result without a call": { messages: [{ role: "tool", tool_call_id: "c1", content: "Rain" }] },
  "an unknown model": { model: "nobody" }
}

const responsesTool = (name: string, more: object = {}) => ({
  type: "function",
  name,
  description: "W",
  parameters: citySchema,
  ...more
})
const responsesUser = (...content: ReadonlyArray<object>) => ({ input: [{ role: "user", content }] })
const reasoningItem = {
  type: "reasoning",
  id: "rs_1",
  summary: [{ type: "summary_text", text: "Hm." }],
  encrypted_content: "ZW5j"
}

const responses: Requests = {
  "turns of every role": {
    instructions: "Be brief.",
    input: [
      { role: "developer", content: "Be kind." },
      { role: "system", content: [{ type: "input_text", text: "Be good." }] },
      { type: "message", role: "user", content: "A" },
      {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        phase: "final_answer",
        content: [{ type: "output_text", text: "B", annotations: [], logprobs: [] }]
      },
      { role: "developer", content: "Now be long." },
      { role: "user", content: [{ type: "input_text", text: "C" }, { type: "input_text", text: "D" }] },
      { type: "message", role: "assistant", content: [{ type: "refusal", refusal: "No." }] },
      { role: "user", content: "E" }
    ]
  },
  "sampling": { temperature: 0.3, top_p: 0.9, max_output_tokens: 50, stop: ["END"], seed: 7, top_k: 40 },
  "probabilities": { include: ["message.output_text.logprobs"], top_logprobs: 2 },
  "an object": { text: { format: { type: "json_object" } } },
  "a schema": { text: { format: { type: "json_schema", ...city, description: "A city" }, verbosity: "low" } },
  "text asked for": { text: { format: { type: "text" } } },
  "tools, strict and loose": {
    tools: [responsesTool("f", { strict: true }), responsesTool("g", { strict: false }), responsesTool("h")],
    tool_choice: "auto",
    parallel_tool_calls: true
  },
  "a tool that must be called": { tools: [responsesTool("f"), responsesTool("g")], tool_choice: "required" },
  "the tool that must be called": {
    tools: [responsesTool("g"), responsesTool("f")],
    tool_choice: { type: "function", name: "f" },
    parallel_tool_calls: false
  },
  "tools that are allowed": {
    tools: [responsesTool("f"), responsesTool("g")],
    tool_choice: { type: "allowed_tools", mode: "required", tools: [{ type: "function", name: "f" }] }
  },
  "custom tools": {
    tools: [
      { type: "custom", name: "f", description: "W" },
      { type: "custom", name: "g", format: { type: "grammar", syntax: "lark", definition: "start: \"a\"" } }
    ]
  },
  "tools in namespaces": {
    tools: [{ type: "namespace", name: "weather", description: "W", tools: [responsesTool("f")] }]
  },
  "tools of the vendor": {
    tools: [
      { type: "web_search" },
      { type: "code_interpreter", container: { type: "auto" } },
      { type: "file_search", vector_store_ids: ["vs_1"] },
      { type: "image_generation" },
      { type: "mcp", server_label: "s", server_url: "https://x.test" },
      { type: "local_shell" },
      { type: "shell" },
      { type: "apply_patch" },
      responsesTool("f")
    ]
  },
  "parallel calls with results and reasoning": {
    ...reasoner,
    tools: [responsesTool("f")],
    include: ["reasoning.encrypted_content"],
    input: [
      { role: "user", content: "Go" },
      reasoningItem,
      { type: "function_call", id: "fc_1", call_id: "c1", name: "f", arguments: args, status: "completed" },
      { type: "function_call", call_id: "c2", name: "f", arguments: "{\"city\":\"Rome\"}" },
      { type: "function_call_output", call_id: "c1", output: "Rain" },
      {
        type: "function_call_output",
        call_id: "c2",
        output: [{ type: "input_text", text: "Sun" }, { type: "input_image", image_url: picture }]
      }
    ]
  },
  "thinking itself": {
    ...reasoner,
    input: [
      { role: "user", content: "Two and two?" },
      { type: "reasoning", id: "rs_1", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] },
      { role: "assistant", content: "Four." },
      { role: "user", content: "Sure?" }
    ]
  },
  "calls of custom tools": {
    tools: [{ type: "custom", name: "f" }],
    input: [
      { role: "user", content: "Go" },
      { type: "custom_tool_call", call_id: "c1", name: "f", input: "+a" },
      { type: "custom_tool_call_output", call_id: "c1", output: "done" }
    ]
  },
  "calls of tools of the vendor": {
    input: [
      { role: "user", content: "Go" },
      { type: "web_search_call", id: "ws_1", status: "completed", action: { type: "search", query: "q" } },
      {
        type: "local_shell_call",
        id: "ls_1",
        call_id: "c1",
        action: { type: "exec", command: ["ls"], env: {} },
        status: "completed"
      },
      { type: "local_shell_call_output", id: "ls_1", call_id: "c1", output: "a.txt" },
      { type: "mcp_call", id: "m_1", server_label: "s", name: "f", arguments: "{}", output: "ok" },
      { type: "image_generation_call", id: "ig_1", status: "completed", result: png },
      { role: "user", content: "So?" }
    ]
  },
  "pictures of every form": responsesUser(
    { type: "input_text", text: "Look" },
    { type: "input_image", image_url: picture, detail: "high" },
    { type: "input_image", image_url: "https://x.test/a.png", detail: "low" }
  ),
  "files of every form": responsesUser(
    { type: "input_file", file_data: pdf, filename: "a.pdf" },
    { type: "input_file", file_url: "https://x.test/a.pdf" }
  ),
  "a stored file": responsesUser({ type: "input_file", file_id: "file-1" }),
  "no effort": { ...reasoner, reasoning: { effort: "none" } },
  "the least effort": { ...reasoner, reasoning: { effort: "minimal" } },
  "high effort with a summary": { ...reasoner, reasoning: { effort: "high", summary: "detailed" } },
  "modes of reasoning": {
    ...reasoner,
    reasoning: { effort: "xhigh", context: "all", mode: "pro", generate_summary: "auto" }
  },
  "labels": {
    metadata: { a: "b" },
    user: "u",
    safety_identifier: "s",
    prompt_cache_key: "k",
    service_tier: "flex",
    truncation: "auto",
    max_tool_calls: 3,
    client_metadata: { a: "b" }
  },
  "marks of the cache and fields within elements": {
    input: [
      {
        role: "user",
        content: [{ type: "input_text", text: "Look", prompt_cache_breakpoint: { mode: "explicit" } }],
        tone: "dry"
      },
      { type: "configuration_update", a: 1 }
    ]
  },
  "fields of servers": { min_p: 0.05, provider: { order: ["a"] } },
  "in the background": { background: true },
  "a stored prompt": { prompt: { id: "pmpt_1" } },
  "a conversation": { conversation: "conv_1" },
  "a compaction": {
    input: [{ role: "user", content: "Go" }, { type: "compaction", encrypted_content: "c2VhbGVk" }, {
      role: "user",
      content: "On"
    }]
  },
  "nothing that came before": { previous_response_id: "resp_nobody" },
  "no input": { input: [] },
  "a wrong temperature": { temperature: 3 },
  "a result without a call": { input: [{ type: "function_call_output", call_id: "c1", output: "Rain" }] },
  "an unknown model": { model: "nobody" }
}

const messagesTool = (name: string, more: object = {}) => ({
  name,
  description: "W",
  input_schema: citySchema,
  ...more
})
const messagesUser = (...content: ReadonlyArray<object>) => ({ messages: [{ role: "user", content }] })
const cached = { cache_control: { type: "ephemeral" } }

const messages: Requests = {
  "turns of every role": {
    system: [{ type: "text", text: "Be brief." }, { type: "text", text: "Be kind.", ...cached }],
    messages: [
      { role: "user", content: "A" },
      { role: "assistant", content: [{ type: "text", text: "B" }] },
      { role: "system", content: "Now be long." },
      { role: "user", content: [{ type: "text", text: "C" }, { type: "text", text: "D", ...cached }] }
    ]
  },
  "the beginning of the reply": { messages: [{ role: "user", content: "A" }, { role: "assistant", content: "So" }] },
  "sampling": { temperature: 0.3, top_p: 0.9, top_k: 40, max_tokens: 50, stop_sequences: ["END", "STOP"], seed: 7 },
  "a schema": { output_config: { format: { type: "json_schema", schema: citySchema } } },
  "the older name of a schema": { output_format: { type: "json_schema", schema: citySchema } },
  "tools with all their fields": {
    tools: [
      messagesTool("f", { strict: true, ...cached }),
      messagesTool("g", {
        type: "custom",
        eager_input_streaming: true,
        allowed_callers: ["direct"],
        input_examples: [{ city: "Oslo" }]
      })
    ],
    tool_choice: { type: "auto", disable_parallel_tool_use: true }
  },
  "a tool that must be called": { tools: [messagesTool("f"), messagesTool("g")], tool_choice: { type: "any" } },
  "the tool that must be called": {
    tools: [messagesTool("g"), messagesTool("f")],
    tool_choice: { type: "tool", name: "f", disable_parallel_tool_use: true }
  },
  "tools of the vendor": {
    tools: [
      { type: "web_search_20250305", name: "web_search", max_uses: 3 },
      { type: "bash_20250124", name: "bash" },
      { type: "text_editor_20250728", name: "str_replace_based_edit_tool" },
      { type: "code_execution_20250825", name: "code_execution" },
      { type: "memory_20250818", name: "memory" },
      messagesTool("f")
    ]
  },
  "parallel calls with results and thinking": {
    ...reasoner,
    max_tokens: 4000,
    thinking: { type: "enabled", budget_tokens: 2048 },
    tools: [messagesTool("f")],
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm.", signature: "c2ln" },
          { type: "redacted_thinking", data: "ZW5j" },
          { type: "text", text: "Let me see." },
          { type: "tool_use", id: "c1", name: "f", input: { city: "Oslo" } },
          { type: "tool_use", id: "c2", name: "f", input: { city: "Rome" } }
        ]
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "c1", content: "Rain", ...cached },
          {
            type: "tool_result",
            tool_use_id: "c2",
            is_error: true,
            content: [
              { type: "text", text: "Look" },
              { type: "image", source: { type: "base64", media_type: "image/png", data: png } }
            ]
          },
          { type: "text", text: "So?" }
        ]
      }
    ]
  },
  "calls of tools of the vendor": {
    messages: [
      { role: "user", content: "Go" },
      {
        role: "assistant",
        content: [
          { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "q" } },
          {
            type: "web_search_tool_result",
            tool_use_id: "srvtoolu_1",
            content: [{ type: "web_search_result", url: "https://x.test", title: "X", encrypted_content: "ZW5j" }]
          },
          {
            type: "text",
            text: "So.",
            citations: [{
              type: "char_location",
              cited_text: "a",
              document_index: 0,
              start_char_index: 0,
              end_char_index: 1
            }]
          }
        ]
      },
      { role: "user", content: "So?" }
    ]
  },
  "pictures of every form": messagesUser(
    { type: "text", text: "Look" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: png }, ...cached },
    { type: "image", source: { type: "url", url: "https://x.test/a.png" } }
  ),
  "a stored picture": messagesUser({ type: "image", source: { type: "file", file_id: "file_1" } }),
  "documents of every form": messagesUser(
    {
      type: "document",
      title: "A",
      context: "C",
      citations: { enabled: true },
      source: { type: "base64", media_type: "application/pdf", data: png }
    },
    { type: "document", source: { type: "text", media_type: "text/plain", data: "Words" } },
    { type: "document", source: { type: "url", url: "https://x.test/a.pdf" } },
    { type: "document", source: { type: "content", content: [{ type: "text", text: "More" }] } },
    { type: "search_result", source: "https://x.test", title: "X", content: [{ type: "text", text: "Found" }] }
  ),
  "no thinking": { ...reasoner, thinking: { type: "disabled" } },
  "a budget": { ...reasoner, max_tokens: 9000, thinking: { type: "enabled", budget_tokens: 4096 } },
  "thinking as the model sees fit": {
    ...reasoner,
    thinking: { type: "adaptive", display: "summarized" },
    output_config: { effort: "high" }
  },
  "effort": { ...reasoner, output_config: { effort: "low" } },
  "labels": { metadata: { user_id: "u" }, service_tier: "standard_only", ...cached },
  "fields of the vendor": {
    container: "c",
    inference_geo: "eu",
    speed: "fast",
    context_management: { edits: [] },
    mcp_servers: [{ type: "url", url: "https://x.test", name: "s" }]
  },
  "fields of servers": { min_p: 0.05, provider: { order: ["a"] } },
  "blocks of unknown kinds": messagesUser({ type: "hologram", data: "x", text: "A hologram" }, {
    type: "text",
    text: "Hi"
  }),
  "no messages": { messages: [] },
  "no limit of output": { max_tokens: null },
  "a wrong temperature": { temperature: 3 },
  "a result without a call": messagesUser({ type: "tool_result", tool_use_id: "c1", content: "Rain" }),
  "an unknown model": { model: "nobody" }
}

const declared = (...names: ReadonlyArray<string>) => ({
  functionDeclarations: names.map((name) => ({ name, description: "W", parametersJsonSchema: citySchema }))
})
const generateUser = (...parts: ReadonlyArray<object>) => ({ contents: [{ role: "user", parts }] })
const config = (generationConfig: object) => ({ generationConfig })

const generate: Requests = {
  "turns of every role": {
    systemInstruction: { role: "system", parts: [{ text: "Be brief." }, { text: "Be kind." }] },
    contents: [
      { role: "user", parts: [{ text: "A" }] },
      { role: "model", parts: [{ text: "B" }] },
      { role: "user", parts: [{ text: "C" }, { text: "D" }] }
    ]
  },
  "snake case and short forms": {
    system_instruction: "Be brief.",
    contents: "A",
    generation_config: { max_output_tokens: 9, stop_sequences: ["END"] }
  },
  "sampling": config({
    temperature: 0.3,
    topP: 0.9,
    topK: 40,
    seed: 7,
    presencePenalty: 0.1,
    frequencyPenalty: -0.1,
    maxOutputTokens: 50,
    stopSequences: ["END", "STOP"],
    candidateCount: 1
  }),
  "probabilities": config({ responseLogprobs: true, logprobs: 2 }),
  "an object": config({ responseMimeType: "application/json" }),
  "a schema of the vendor": config({
    responseMimeType: "application/json",
    responseSchema: { type: "OBJECT", properties: { city: { type: "STRING", nullable: true } }, required: ["city"] }
  }),
  "a schema": config({ responseMimeType: "application/json", responseJsonSchema: citySchema }),
  "tools of both forms": {
    tools: [
      declared("f"),
      {
        functionDeclarations: [{
          name: "g",
          description: "W",
          behavior: "BLOCKING",
          parameters: { type: "OBJECT", properties: { n: { type: "INTEGER", format: "int32" } } }
        }]
      }
    ],
    toolConfig: { functionCallingConfig: { mode: "AUTO" } }
  },
  "a tool that must be called": {
    tools: [declared("f", "g")],
    toolConfig: { functionCallingConfig: { mode: "ANY" } }
  },
  "the tool that must be called": {
    tools: [declared("g", "f")],
    toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["f"] } }
  },
  "calls by the schema": { tools: [declared("f")], toolConfig: { functionCallingConfig: { mode: "VALIDATED" } } },
  "tools of the vendor": {
    tools: [{ googleSearch: {} }, { codeExecution: {} }, { urlContext: {} }, declared("f")],
    toolConfig: { retrievalConfig: { languageCode: "en" } }
  },
  "parallel calls with results and thoughts": {
    tools: [declared("f")],
    contents: [
      { role: "user", parts: [{ text: "Go" }] },
      {
        role: "model",
        parts: [
          { text: "Hm.", thought: true, thoughtSignature: "c2ln" },
          { functionCall: { id: "c1", name: "f", args: { city: "Oslo" } }, thoughtSignature: "c2ln" },
          { functionCall: { id: "c2", name: "f", args: { city: "Rome" } } }
        ]
      },
      {
        role: "user",
        parts: [
          { functionResponse: { id: "c1", name: "f", response: { output: "Rain" } } },
          {
            functionResponse: {
              id: "c2",
              name: "f",
              response: { error: "No." },
              parts: [{ inlineData: { mimeType: "image/png", data: png } }]
            }
          }
        ]
      }
    ]
  },
  "calls without ids": {
    tools: [declared("f")],
    contents: [
      { role: "user", parts: [{ text: "Go" }] },
      { role: "model", parts: [{ functionCall: { name: "f", args: {} } }] },
      { role: "function", parts: [{ functionResponse: { name: "f", response: { rain: true } } }] }
    ]
  },
  "code that the vendor ran": {
    contents: [
      { role: "user", parts: [{ text: "Go" }] },
      {
        role: "model",
        parts: [
          { executableCode: { language: "PYTHON", code: "print(1)" } },
          { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
          { text: "One." }
        ]
      },
      { role: "user", parts: [{ text: "So?" }] }
    ]
  },
  "media of every form": generateUser(
    { text: "Look" },
    { inlineData: { mimeType: "image/png", data: png, displayName: "a" } },
    { inlineData: { mimeType: "application/pdf", data: png } },
    { inlineData: { mimeType: "audio/wav", data: png } },
    { inlineData: { mimeType: "video/mp4", data: png }, videoMetadata: { fps: 2 } },
    { fileData: { fileUri: "https://x.test/a.png", mimeType: "image/png" } },
    {
      fileData: { fileUri: "https://x.test/a.pdf", mimeType: "application/pdf" },
      mediaResolution: { level: "MEDIA_RESOLUTION_LOW" }
    }
  ),
  "no thinking": config({ thinkingConfig: { thinkingBudget: 0 } }),
  "a budget": config({ thinkingConfig: { thinkingBudget: 4096, includeThoughts: true } }),
  "thinking as the model sees fit": config({ thinkingConfig: { thinkingBudget: -1, includeThoughts: false } }),
  "a level of thinking": config({ thinkingConfig: { thinkingLevel: "HIGH", includeThoughts: true } }),
  "fields of the vendor": {
    safetySettings: [{ category: "HARM_CATEGORY_HARASSMENT", threshold: "BLOCK_NONE" }],
    labels: { a: "b" },
    generationConfig: { mediaResolution: "MEDIA_RESOLUTION_LOW", audioTimestamp: true, speechConfig: {} }
  },
  "fields of servers": { min_p: 0.05, provider: { order: ["a"] } },
  "a stored prompt": { cachedContent: "cachedContents/a" },
  "pictures asked for": config({ responseModalities: ["TEXT", "IMAGE"] }),
  "several candidates": config({ candidateCount: 2 }),
  "no contents": { contents: [] },
  "a wrong temperature": config({ temperature: 3 }),
  "a result without a call": generateUser({ functionResponse: { name: "f", response: { output: "Rain" } } })
}

export const requests = { chat, responses, messages, generate }
