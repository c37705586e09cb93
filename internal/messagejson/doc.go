// Package messagejson writes Service Bus messages as JSON lines and reads them back, losing nothing.
//
// A line is one JSON object. People write the short forms, and the package writes whichever form keeps the type:
//
//	{"message_id":"1042","body":"{\"amount\":40}"}             text, sent as one data section
//	{"message_id":"1042","body":{"amount":40}}                 the same, with the bytes that the line has
//	{"message_id":"1043","body_b64":"77u/e30="}                one data section of any bytes
//	{"message_id":"1044","data_sections":["ab","cd"]}          several; data_sections_b64 for any bytes
//	{"message_id":"1045","amqp_value":"text"}                  an amqp-value body; amqp_sequence for lists of lists
//	{"message_id_amqp":{"ulong":42}}                           a typed id: ulong, uuid or binary_hex
//
// # Members
//
// Every member may be left out. Their names are exact, and an unknown one is refused, so that a misspelling never sends a
// message that lacks something; so are a name that is given twice, and text that UTF-8 cannot hold, outside of a body that is
// JSON of its own. Who the message is, and what for:
//
//	message_id               text: the id that the sender gave
//	message_id_amqp          a typed id in place of it: {"ulong":42}, {"uuid":"..."} or {"binary_hex":"00ff"}
//	correlation_id           a value: text, or a typed one
//	subject                  text: the label
//	content_type             text, such as application/json
//	content_encoding         text, such as gzip
//	to                       text: the address it is meant for
//	reply_to                 text: the address for an answer
//	reply_to_session_id      text: the session for an answer
//	session_id               text: the session, called group-id in AMQP
//	group_sequence           a whole number: its place in the session
//	user_id_b64              base64: the user who sent it
//	partition_key            text: the key of the partition
//	application_properties   an object of values: the sender's own properties
//
// When, and how:
//
//	ttl                      a duration, as 90s, PT1M30S or P1D: how long the message lives
//	absolute_expiry_time     a time, as 2006-01-02T15:04:05Z: when it ends
//	creation_time            a time: when it was made
//	scheduled_enqueue_time   a time: when it is to appear in the queue
//	durable                  true or false, as the AMQP header has it
//	first_acquirer           true or false, as the AMQP header has it
//	priority                 a whole number from 0 to 255; 4 when left out
//	message_annotations      a map of values: what brokers write on the message
//	delivery_annotations     a map of values: what is meant for the next peer alone
//	footer                   a map of values: what follows the body
//
// The body, in one of these forms:
//
//	body                     text by its value, and any other JSON by its bytes, as one data section
//	body_b64                 base64: one data section
//	data_sections            an array of texts: several data sections
//	data_sections_b64        an array of base64: several data sections
//	amqp_value               a value: an amqp-value body
//	amqp_sequence            an array of arrays of values: an amqp-sequence body
//
// # Values
//
// Application properties, annotations and values are plain JSON where JSON keeps their type (string, true, null, whole
// numbers as long, other numbers as double), and otherwise an object with the AMQP type as its one name: {"int":1},
// {"ubyte":1}, {"float":1.5}, {"uuid":"..."}, {"symbol":"..."}, {"timestamp":"2006-01-02T15:04:05.000Z"},
// {"binary_b64":"..."}, {"string_b64":"..."} for a string that is not UTF-8, {"map":[[key,value],...]}. A list is an array;
// an AMQP array of one type comes back as a list of that type.
package messagejson
