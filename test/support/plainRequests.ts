/** The shortest request of each style, to which tests add fields. */

export const question = [{ role: "user", content: "Hi" }]

export const plainRequests = {
  chat: {
    path: () => "/v1/chat/completions",
    body: (stream: boolean) => ({ model: "upstream-chat", stream, messages: question })
  },
  responses: {
    path: () => "/v1/responses",
    body: (stream: boolean) => ({ model: "upstream-chat", stream, input: "Hi", store: false })
  },
  messages: {
    path: () => "/v1/messages",
    body: (stream: boolean) => ({ model: "upstream-chat", stream, max_tokens: 9, messages: question })
  },
  generate: {
    path: (stream: boolean) =>
      `/v1beta/models/upstream-chat:${stream ? "streamGenerateContent?alt=sse" : "generateContent"}`,
    body: () => ({ contents: [{ role: "user", parts: [{ text: "Hi" }] }] })
  }
}
