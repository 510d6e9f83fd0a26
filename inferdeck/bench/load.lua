-- Eight reviews of 4 to about 550 characters: English, Chinese, mixed, markup, emoji. The same for every variant.
local texts = {
  "good", "很好用 works great", "Arrived late, box damaged, but the phone itself is fine.",
  "质量不错,物流很快,客服态度也很好,下次还会再来购买的,推荐给大家。",
  "Bought two of these for my parents. Setup took 5 minutes and battery lasts about 3 days 👍",
  "<b>DON'T BUY</b> see http://example.com/review?id=123 !!!!!! refund took 6 weeks",
  string.rep("The sound is clear and the noise cancelling works on the train. ", 5),
  string.rep("Average product; some parts feel cheap 一般般. ", 12),
}
local requests, threads = {}, {}
sent = 0

setup = function(thread) table.insert(threads, thread) end

-- `wrk ... URL FILE` sends the JSON bodies in FILE instead, one a line.
init = function(args)
  local bodies = {}
  if args[1] then
    for line in io.lines(args[1]) do table.insert(bodies, line) end
  else
    for _, text in ipairs(texts) do table.insert(bodies, '{"text":"' .. text .. '","product_id":"AB12345678"}') end
  end
  for i, body in ipairs(bodies) do
    requests[i] = wrk.format("POST", "/v1/sentiment",
      {["Content-Type"] = "application/json", ["User-Agent"] = "bench", ["Accept"] = "*/*"}, body)
  end
end

request = function()
  sent = sent + 1
  return requests[sent % #requests + 1]
end

-- One JSON line with whole numbers: answered, sent (the rest was in flight when time was up), errors, times in microseconds.
done = function(summary, latency, _)
  local all = 0
  for _, thread in ipairs(threads) do all = all + thread:get("sent") end
  local e = summary.errors
  io.write(string.format(
    '{"answered": %d, "sent": %d, "microseconds": %d, "refused": %d, "broken": %d, "p50_us": %d, "p95_us": %d, "p99_us": %d}\n',
    summary.requests, all, summary.duration, e.status, e.connect + e.read + e.write + e.timeout,
    latency:percentile(50), latency:percentile(95), latency:percentile(99)))
end
